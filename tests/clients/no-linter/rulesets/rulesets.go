// Package rulesets stands in for the linter that decK's `file lint` uses.
package rulesets

import "errors"

type RuleSet struct{}

type Maker struct{}

func CreateRuleSetFromData([]byte) (*RuleSet, error) {
	return nil, errors.New("this build of decK has no linter")
}

func (*RuleSet) GetExtendsValue() map[string]string { return nil }

func BuildDefaultRuleSets() Maker { return Maker{} }

func (Maker) GenerateRuleSetFromSuppliedRuleSet(rules *RuleSet) *RuleSet { return rules }
