// Renders a chart the way Helm does, with the same template engine and the same functions:
//
//	go run render.go CHART RELEASE [VALUES.yaml ...]
//
// Prints one YAML stream; what a template refuses with `fail` or `required` goes to stderr, with exit code 1.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type values = map[string]interface{}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(chart, release string, valueFiles []string) error {
	about, err := read(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	given, err := read(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	for _, file := range valueFiles {
		more, err := read(file)
		if err != nil {
			return err
		}
		given = override(given, more)
	}
	scope := values{
		"Values":   given,
		"Chart":    values{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release":  values{"Name": release, "Namespace": "jobs", "Service": "Helm", "IsInstall": true, "IsUpgrade": false},
		"Template": values{"BasePath": "templates"},
	}
	return render(chart, scope)
}

func render(chart string, scope values) error {
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	sort.Strings(files)
	set := template.New("chart").Option("missingkey=zero")
	set.Funcs(functions(set))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := set.New(filepath.Base(file)).Parse(string(text)); err != nil {
			return err
		}
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") || !strings.HasSuffix(name, ".yaml") && name != "NOTES.txt" {
			continue
		}
		var out bytes.Buffer
		if err := set.ExecuteTemplate(&out, name, scope); err != nil {
			return err
		}
		// Helm prints "<no value>" as nothing.
		text := strings.ReplaceAll(out.String(), "<no value>", "")
		if name == "NOTES.txt" {
			text = "# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n"
		}
		fmt.Printf("---\n# Source: %s\n%s\n", name, text)
	}
	return nil
}

func functions(set *template.Template) template.FuncMap {
	all := sprig.TxtFuncMap()
	// A chart's text must not depend on the machine that renders it.
	delete(all, "env")
	delete(all, "expandenv")
	all["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := set.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	all["tpl"] = func(text string, data interface{}) (string, error) {
		inner, err := set.Clone()
		if err != nil {
			return "", err
		}
		if inner, err = inner.New("tpl").Parse(text); err != nil {
			return "", err
		}
		var out bytes.Buffer
		err = inner.Execute(&out, data)
		return out.String(), err
	}
	all["toYaml"] = func(value interface{}) (string, error) {
		var out bytes.Buffer
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		err := encoder.Encode(value)
		return strings.TrimSuffix(out.String(), "\n"), err
	}
	all["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	return all
}

// Helm reads YAML by way of JSON: numbers are floats, keys are texts.
func read(file string) (values, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var raw values
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	result := values{}
	return result, json.Unmarshal(plain, &result)
}

func override(base, more values) values {
	for key, value := range more {
		inner, isMap := value.(values)
		old, wasMap := base[key].(values)
		if isMap && wasMap {
			base[key] = override(old, inner)
		} else {
			base[key] = value
		}
	}
	return base
}
