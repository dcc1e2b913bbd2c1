// Package motor stands in for the linter that decK's `file lint` uses.
package motor

import "github.com/daveshanley/vacuum/rulesets"

type RuleSetExecution struct {
	RuleSet           *rulesets.RuleSet
	Spec              []byte
	SkipDocumentCheck bool
	AllowLookup       bool
}

type Rule struct {
	Severity string
	Given    any
}

type Node struct{ Line, Column int }

type Result struct {
	Message   string
	Rule      *Rule
	StartNode *Node
}

type Results struct{ Results []Result }

func ApplyRulesToRuleSet(*RuleSetExecution) Results { return Results{} }
