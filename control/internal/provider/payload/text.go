package payload

import (
	"encoding/json"
	"strings"

	"storefront.internal/shared/catalog"
)

// Undetermined is the language of a text whose shop does not name its language (BCP 47, ISO 639-2 "und").
const Undetermined = "und"

// Texts is a text by language, or a text in the shop's one language. Languages without a text are absent.
type Texts struct {
	ByLanguage map[string]string
	Single     string
	Given      bool // there was a text, maybe an empty one
}

// UnmarshalJSON takes any value.
func (t *Texts) UnmarshalJSON(b []byte) error {
	*t = Texts{}
	if b[0] != '{' {
		var s Text
		if err := s.UnmarshalJSON(b); err != nil {
			return err
		}
		t.Single, t.Given = string(s), b[0] == '"'
		return nil
	}
	if longer(b, 2*maxLanguages) {
		return tooMany[Texts]()
	}
	var by map[string]*Text
	if err := json.Unmarshal(b, &by); err != nil {
		return err
	}
	t.ByLanguage = make(map[string]string, len(by))
	for language, text := range by {
		if text != nil {
			t.ByLanguage[language], t.Given = string(*text), true
		}
	}
	return nil
}

// In returns the text as the catalog has it, nil when there is none. A single text gets the shop's language.
func (t Texts) In(language string) catalog.LocalizedText {
	if !t.Given {
		return nil
	}
	if t.ByLanguage == nil {
		return catalog.LocalizedText{Language(language): t.Single}
	}
	out := make(catalog.LocalizedText, len(t.ByLanguage))
	for key, text := range t.ByLanguage {
		out[Language(key)] = text
	}
	return out
}

// Localized returns a text in the shop's one language, nil when it is empty.
func Localized(language, text string) catalog.LocalizedText {
	if text == "" {
		return nil
	}
	return catalog.LocalizedText{Language(language): text}
}

// Language returns a locale in the form of BCP 47: pt_BR is pt-BR. An empty or invalid locale is
// undetermined.
func Language(locale string) string {
	tag, _, _ := strings.Cut(strings.TrimSpace(locale), ".") // en_US.UTF-8
	tag = strings.ReplaceAll(tag, "_", "-")
	first, _, _ := strings.Cut(tag, "-")
	const longest = 35
	if len(tag) > longest || len(first) < 2 || len(first) > 8 || strings.Trim(first, letters) != "" {
		return Undetermined
	}
	for part := range strings.SplitSeq(tag, "-") {
		if part == "" || len(part) > 8 || strings.Trim(part, letters+"0123456789") != "" {
			return Undetermined
		}
	}
	return tag
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
