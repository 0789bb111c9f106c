package main

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// instruction is an instruction of the Dockerfile.
type instruction struct{ word, rest string }

// stages returns the instructions of each stage, beginning with FROM.
func stages(t *testing.T) [][]instruction {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(text), "")
	var all [][]instruction
	for _, line := range strings.Split(strings.ReplaceAll(plain, "\\\n", " "), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "FROM":
			all = append(all, []instruction{{word, rest}})
		case word != "" && len(all) > 0:
			all[len(all)-1] = append(all[len(all)-1], instruction{word, rest})
		}
	}
	return all
}

// TestDockerfileBuilds executes the build stage in a folder and compares the binary with the one that command
// images built.
func TestDockerfileBuilds(t *testing.T) {
	root, version := os.Getenv("IMAGES_ROOT"), os.Getenv("VERSION")
	if root == "" || version == "" {
		t.Fatal("IMAGES_ROOT and VERSION are required: use `make images`")
	}
	for _, module := range []string{"edge", "control", "engine-relay"} {
		dir := t.TempDir()
		follow(t, stages(t)[0], dir, map[string]string{"MODULE": module, "VERSION": version,
			"TARGETOS": "linux", "TARGETARCH": runtime.GOARCH})
		if digest(t, filepath.Join(dir, "out/service")) != digest(t,
			filepath.Join(root, module, "ko-app", module)) {
			t.Errorf("%s: the binary differs from the one in the image", module)
		}
	}
}

// follow executes instructions with dir as the root of the file system.
func follow(t *testing.T, steps []instruction, dir string, args map[string]string) {
	t.Helper()
	env, work := os.Environ(), dir
	expand := func(s string) string { return os.Expand(s, func(name string) string { return args[name] }) }
	for _, step := range steps[1:] {
		switch step.word {
		case "ARG":
			name, value, _ := strings.Cut(step.rest, "=")
			if _, given := args[name]; !given {
				args[name] = value
			}
			env = append(env, name+"="+args[name])
		case "ENV":
			env = append(env, strings.Fields(step.rest)...)
		case "WORKDIR":
			work = filepath.Join(dir, step.rest)
		case "COPY":
			words := strings.Fields(expand(step.rest))
			to := filepath.Join(work, words[len(words)-1])
			for _, from := range words[:len(words)-1] {
				copied(t, filepath.Join("../..", from), to, strings.HasSuffix(words[len(words)-1], "/"))
			}
		case "RUN":
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(step.rest, "-o /out/", "-o "+dir+"/out/"))
			cmd.Dir, cmd.Env = work, env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("RUN %s: %v\n%s", step.rest, err, out)
			}
		default:
			t.Fatalf("%s is not supported", step.word)
		}
	}
}

// copied copies a file into a folder, or the content of a folder without the ignored files.
func copied(t *testing.T, from, to string, into bool) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if into {
			rest = filepath.Base(path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rest)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rest), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDockerfileImage checks that the image has only the binary and runs as a user without a name.
func TestDockerfileImage(t *testing.T) {
	all := stages(t)
	last := all[len(all)-1]
	for _, want := range []instruction{
		{"FROM", "scratch"}, {"COPY", "--from=build /out/service /service"}, {"USER", user}, {"ENTRYPOINT",
			`["/service"]`},
	} {
		if !slices.Contains(last, want) {
			t.Errorf("no %s %s in the last stage", want.word, want.rest)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(last), func(i instruction) bool {
		return i.word != "COPY" &&
			i.word != "RUN"
	})); n != 1 {
		t.Errorf("%d instructions put files into the image", n)
	}
	ignore, err := os.ReadFile("../Dockerfile.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(ignore)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			names = append(names, line)
		}
	}
	if !slices.Equal(names, []string{"*", "!shared", "!edge", "!control", "!engine-relay", "!deploy/go.mod",
		"!deploy/go.sum", "!deploy/demoengine", "**/testdata", "**/*_test.go"}) {
		t.Errorf("the build context differs from what the test above copies: %q", names)
	}
}

func digest(t *testing.T, path string) [32]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(text)
}
