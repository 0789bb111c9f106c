//go:build web

package web

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// consumer is a project that uses every entry of the package.
const consumer = `import { derive, storefront } from '@storefront/browser';
import type { Decision, Options, Result, Stats, Storefront } from '@storefront/browser';
import { auto } from '@storefront/browser/auto';
import { debug } from '@storefront/browser/debug';
import { defineElement } from '@storefront/browser/element';

const options: Options = {
  baseUrl: 'https://edge.example', connectionId: 'con_a', key: 'spk_k', consent: 'off',
};
const sf: Storefront = storefront({ ...options, onResult: (r: Result) => console.log(r.status) });
const decision: Decision = sf.adopt({
  decision_id: 'dec_d', placement: 'home', served_at: '2026-11-22T12:00:00Z', source: 'engine', items: [],
});
const stats: Stats = sf.stats();
const id: string = derive('itm', 'con_a', 'product', '1');
const all: (() => unknown)[] = [() => auto(sf), () => debug(sf), () => defineElement(sf, 'sf-shelf')];
if (decision.id !== 'dec_d' || stats.consent !== 'off' || all.length !== 3) throw new Error('wrong');
if (id !== 'itm_32cqvae1mokk7k9mm1e10qphd44gnb66') throw new Error(id);
sf.close();
`

// run runs a program in a folder.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tool is a program of the SDK's development dependencies.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(sdk, "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing, run `npm ci` in edge/sdk: %v", name, err)
	}
	return path
}

// packed builds the package in a folder of its own, with types, and returns its tarball.
func packed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "README.md"} {
		text, err := os.ReadFile(filepath.Join(sdk, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, string(text))
	}
	files, err := Build(sdk)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Write(filepath.Join(dir, "dist")); err != nil {
		t.Fatal(err)
	}
	run(t, sdk, tool(t, "tsc"), "--project", ".", "--outDir", filepath.Join(dir, "dist"))
	run(t, dir, tool(t, "publint"), "run", ".", "--strict")
	name := strings.TrimSpace(run(t, dir, "npm", "pack", "--silent", "--offline"))
	return filepath.Join(dir, name[strings.LastIndexByte(name, '\n')+1:])
}

// The packed package is installed into an empty project without a registry. There, Node imports each entry
// without a window, and TypeScript accepts it under strict rules, as Node and as bundlers resolve modules.
func TestThePackageIsUsedFromAnEmptyProject(t *testing.T) {
	t.Parallel()
	tarball := packed(t)
	dir := t.TempDir()
	write(t, dir, "package.json", `{"name": "shop", "private": true, "type": "module"}`)
	run(t, dir, "npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", tarball)
	write(t, dir, "shop.ts", consumer)
	tsc := tool(t, "tsc")
	for resolution, module := range map[string]string{"nodenext": "nodenext", "bundler": "esnext"} {
		run(t, dir, tsc, "--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom", "--types", "",
			"--module", module, "--moduleResolution", resolution, "shop.ts")
	}
	run(t, dir, tsc, "--strict", "--target", "es2022", "--lib", "es2022,dom", "--types", "", "--module",
		"nodenext", "shop.ts")
	run(t, dir, "node", "shop.js")
	listed := run(t, dir, "tar", "-tzf", tarball)
	for _, name := range strings.Fields(listed) {
		if !strings.HasPrefix(name, "package/dist/") && name != "package/package.json" &&
			name != "package/README.md" {
			t.Errorf("the package has %s", name)
		}
	}
}
