package pods

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// shop is what the steps of the trial leave in the variables of their shell.
type shop struct{ connection, key, decision, signal string }

// step is a section of the trial's README with its commands.
type step struct{ title, commands string }

const trial = "../../examples/trial"

// walkTrial runs the commands of the trial's README in one shell, as a reader does.
func walkTrial(t *testing.T) {
	steps := readSteps(t, trial+"/README.md")
	if len(steps) != 5 {
		t.Fatalf("the trial has %d steps; it promises five", len(steps))
	}
	values := walk(t, steps)
	shared.shop = shop{values["CONNECTION"], values["KEY"], values["DECISION"], values["SIGNAL"]}
	if s := shared.shop; s.connection == "" || s.key == "" || s.decision == "" || s.signal == "" {
		t.Fatalf("the steps left %+v", s)
	}
	shared.receive(t)
	if n := shared.created[shared.shop.signal]; n != 1 {
		t.Errorf("the engine created the signal %d times", n)
	}
}

// readSteps returns the sections with a number and their shell blocks.
func readSteps(t *testing.T, path string) (steps []step) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	numbered := regexp.MustCompile(`(?m)^## (\d+\. .*)$`)
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	at := numbered.FindAllStringSubmatchIndex(string(text), -1)
	for i, match := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		s := step{title: string(text[match[2]:match[3]])}
		for _, block := range blocks.FindAllStringSubmatch(string(text[match[1]:end]), -1) {
			s.commands += block[1]
		}
		if s.commands == "" {
			t.Fatalf("%q has no commands", s.title)
		}
		steps = append(steps, s)
	}
	return steps
}

// walk runs the steps in one shell, reports their times and returns the variables of the shell.
func walk(t *testing.T, steps []step) map[string]string {
	t.Helper()
	const mark = "@@ "
	// The steps leave programs in the background. A subshell would not list them.
	script := "trap 'jobs -p >\"$JOBS\"; kill $(cat \"$JOBS\") || true' EXIT\n"
	for _, s := range steps {
		script += fmt.Sprintf("printf '\\n%s%s\\n' >&2\n%s", mark, s.title, s.commands)
	}
	script += "printf '\\n" + mark + "the end\\n' >&2\nset >&2\n"
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
	cmd.Dir = trial
	cmd.Env = append(os.Environ(), "JOBS="+shared.path("jobs"))
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	values, began, title := map[string]string{}, time.Now(), ""
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		next, ok := strings.CutPrefix(lines.Text(), mark)
		if ok {
			if title != "" {
				t.Logf("%s: %.1f s", title, time.Since(began).Seconds())
			}
			began, title = time.Now(), next
			continue
		}
		if name, value, ok := strings.Cut(lines.Text(), "="); ok && title == "the end" {
			values[name] = strings.Trim(value, "'")
		} else if title != "the end" {
			t.Log(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", title, err)
	}
	return values
}
