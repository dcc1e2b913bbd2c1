//! The grammar of expressions.
//!
//! The rules and their names are those of Kong's own parser, since its errors name the rule that was expected; `pest`
//! keeps track of how far each attempt came. `||` binds closer than `&&`.
//!
//! Source: atc-router 1.6.2 `src/atc_grammar.pest`.

use pest::error::Error;
use pest::iterators::Pairs;
use pest::{Atomicity, ParseResult, ParserState};

/// The rules that make tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Rule {
    End,
    Ident,
    Rhs,
    TransformFunc,
    Lhs,
    IntLiteral,
    HexDigits,
    OctDigits,
    DecDigits,
    StrLiteral,
    StrChar,
    StrEsc,
    RawstrLiteral,
    RawstrChar,
    Ipv4Literal,
    Ipv6Literal,
    Ipv4CidrLiteral,
    Ipv6CidrLiteral,
    BinaryOperator,
    AndOp,
    OrOp,
    NotOp,
    Predicate,
    ParenthesisedExpression,
    Term,
    Expression,
    Matcher,
}

impl Rule {
    /// The name in error messages.
    fn name(self) -> &'static str {
        match self {
            Rule::End => "EOI",
            Rule::Ident => "ident",
            Rule::Rhs => "rhs",
            Rule::TransformFunc => "transform_func",
            Rule::Lhs => "lhs",
            Rule::IntLiteral => "int_literal",
            Rule::HexDigits => "hex_digits",
            Rule::OctDigits => "oct_digits",
            Rule::DecDigits => "dec_digits",
            Rule::StrLiteral => "str_literal",
            Rule::StrChar => "str_char",
            Rule::StrEsc => "str_esc",
            Rule::RawstrLiteral => "rawstr_literal",
            Rule::RawstrChar => "rawstr_char",
            Rule::Ipv4Literal => "ipv4_literal",
            Rule::Ipv6Literal => "ipv6_literal",
            Rule::Ipv4CidrLiteral => "ipv4_cidr_literal",
            Rule::Ipv6CidrLiteral => "ipv6_cidr_literal",
            Rule::BinaryOperator => "binary_operator",
            Rule::AndOp => "and_op",
            Rule::OrOp => "or_op",
            Rule::NotOp => "not_op",
            Rule::Predicate => "predicate",
            Rule::ParenthesisedExpression => "parenthesised_expression",
            Rule::Term => "term",
            Rule::Expression => "expression",
            Rule::Matcher => "matcher",
        }
    }
}

type State<'i> = Box<ParserState<'i, Rule>>;
type Step<'i> = ParseResult<State<'i>>;

/// Reads an expression into tokens. The error says where it fails and what was expected there.
pub(crate) fn parse(text: &str) -> Result<Pairs<'_, Rule>, String> {
    pest::state(text, matcher).map_err(shown)
}

/// An error as text, with the rules by their names.
pub(crate) fn shown(error: Error<Rule>) -> String {
    error.renamed_rules(|rule| rule.name().to_owned()).to_string()
}

fn matcher(state: State<'_>) -> Step<'_> {
    state.rule(Rule::Matcher, |state| {
        state.sequence(|state| {
            let state = state.start_of_input().and_then(space).and_then(expression).and_then(space)?;
            state.rule(Rule::End, |state| state.end_of_input())
        })
    })
}

fn space(state: State<'_>) -> Step<'_> {
    if state.atomicity() != Atomicity::NonAtomic {
        return Ok(state);
    }
    state.repeat(|state| {
        state
            .atomic(Atomicity::Atomic, |state| state.match_char_by(|letter| matches!(letter, ' ' | '\t' | '\r' | '\n')))
    })
}

fn expression(state: State<'_>) -> Step<'_> {
    fn more(state: State<'_>) -> Step<'_> {
        state.sequence(|state| {
            let operator = state
                .rule(Rule::AndOp, |state| state.match_string("&&"))
                .or_else(|state| state.rule(Rule::OrOp, |state| state.match_string("||")));
            operator.and_then(space).and_then(term)
        })
    }
    state.rule(Rule::Expression, |state| {
        state.sequence(|state| {
            term(state).and_then(space).and_then(|state| {
                state.sequence(|state| {
                    state.optional(|state| {
                        more(state)
                            .and_then(|state| state.repeat(|state| state.sequence(|state| space(state).and_then(more))))
                    })
                })
            })
        })
    })
}

fn term(state: State<'_>) -> Step<'_> {
    state.rule(Rule::Term, |state| predicate(state).or_else(parenthesised))
}

fn parenthesised(state: State<'_>) -> Step<'_> {
    state.rule(Rule::ParenthesisedExpression, |state| {
        state.sequence(|state| {
            state
                .optional(|state| state.rule(Rule::NotOp, |state| state.match_string("!")))
                .and_then(space)
                .and_then(|state| state.match_string("("))
                .and_then(space)
                .and_then(expression)
                .and_then(space)
                .and_then(|state| state.match_string(")"))
        })
    })
}

fn predicate(state: State<'_>) -> Step<'_> {
    state.rule(Rule::Predicate, |state| {
        state.sequence(|state| lhs(state).and_then(space).and_then(operator).and_then(space).and_then(rhs))
    })
}

fn lhs(state: State<'_>) -> Step<'_> {
    state.rule(Rule::Lhs, |state| transform(state).or_else(ident))
}

fn transform(state: State<'_>) -> Step<'_> {
    state.rule(Rule::TransformFunc, |state| {
        state.sequence(|state| {
            ident(state)
                .and_then(space)
                .and_then(|state| state.match_string("("))
                .and_then(space)
                .and_then(lhs)
                .and_then(space)
                .and_then(|state| state.match_string(")"))
        })
    })
}

fn ident(state: State<'_>) -> Step<'_> {
    state.rule(Rule::Ident, |state| {
        state.atomic(Atomicity::Atomic, |state| {
            state.sequence(|state| {
                state.match_char_by(|letter| letter.is_ascii_alphabetic()).and_then(|state| {
                    state.repeat(|state| {
                        state.match_char_by(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.'))
                    })
                })
            })
        })
    })
}

fn operator(state: State<'_>) -> Step<'_> {
    fn words(state: State<'_>) -> Step<'_> {
        state.sequence(|state| state.match_string("not").and_then(space).and_then(|state| state.match_string("in")))
    }
    state.rule(Rule::BinaryOperator, |state| {
        let signs = ["==", "!=", "~", "^=", "=^", ">=", ">", "<=", "<", "in"];
        let sign = signs.iter().try_fold(state, |state, sign| match state.match_string(sign) {
            Ok(state) => Err(state),
            Err(state) => Ok(state),
        });
        match sign {
            Err(found) => Ok(found),
            Ok(state) => words(state).or_else(|state| state.match_string("contains")),
        }
    })
}

fn rhs(state: State<'_>) -> Step<'_> {
    state.rule(Rule::Rhs, |state| {
        text(state)
            .or_else(raw_text)
            .or_else(|state| cidr(state, Rule::Ipv4CidrLiteral))
            .or_else(|state| cidr(state, Rule::Ipv6CidrLiteral))
            .or_else(|state| address(state, Rule::Ipv4Literal))
            .or_else(|state| address(state, Rule::Ipv6Literal))
            .or_else(integer)
    })
}

fn text(state: State<'_>) -> Step<'_> {
    fn escape(state: State<'_>) -> Step<'_> {
        state.rule(Rule::StrEsc, |state| {
            state.sequence(|state| {
                state
                    .match_string("\\")
                    .and_then(|state| state.match_char_by(|letter| matches!(letter, '"' | '\\' | 'n' | 'r' | 't')))
            })
        })
    }
    fn letter(state: State<'_>) -> Step<'_> {
        state.rule(Rule::StrChar, |state| state.match_char_by(|letter| !matches!(letter, '"' | '\\')))
    }
    state.atomic(Atomicity::CompoundAtomic, |state| {
        state.rule(Rule::StrLiteral, |state| {
            state.sequence(|state| {
                state
                    .match_string("\"")
                    .and_then(|state| state.repeat(|state| escape(state).or_else(letter)))
                    .and_then(|state| state.match_string("\""))
            })
        })
    })
}

fn raw_text(state: State<'_>) -> Step<'_> {
    fn letter(state: State<'_>) -> Step<'_> {
        state.rule(Rule::RawstrChar, |state| {
            state.sequence(|state| {
                state
                    .lookahead(false, |state| state.match_string("\"#"))
                    .and_then(|state| state.match_char_by(|_| true))
            })
        })
    }
    state.atomic(Atomicity::CompoundAtomic, |state| {
        state.rule(Rule::RawstrLiteral, |state| {
            state.sequence(|state| {
                state
                    .match_string("r#\"")
                    .and_then(|state| state.repeat(letter))
                    .and_then(|state| state.match_string("\"#"))
            })
        })
    })
}

/// Between `least` and `most` characters of a kind.
fn some(state: State<'_>, least: usize, most: usize, kind: fn(char) -> bool) -> Step<'_> {
    state.sequence(|mut state| {
        for count in 0..most {
            state = match state.match_char_by(kind) {
                Ok(state) => state,
                Err(state) if count >= least => return Ok(state),
                Err(state) => return Err(state),
            };
        }
        Ok(state)
    })
}

fn digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

fn hex(letter: char) -> bool {
    letter.is_ascii_hexdigit()
}

fn address(state: State<'_>, rule: Rule) -> Step<'_> {
    fn dotted(state: State<'_>) -> Step<'_> {
        state.sequence(|state| state.match_string(".").and_then(|state| some(state, 1, 3, digit)))
    }
    fn group(state: State<'_>) -> Step<'_> {
        some(state, 1, 4, hex)
    }
    fn colon(state: State<'_>) -> Step<'_> {
        state.match_string(":")
    }
    state.rule(rule, |state| {
        state.atomic(Atomicity::Atomic, |state| {
            state.sequence(|state| match rule {
                Rule::Ipv4Literal => some(state, 1, 3, digit).and_then(dotted).and_then(dotted).and_then(dotted),
                _ => colon(state)
                    .or_else(group)
                    .and_then(colon)
                    .and_then(|state| state.repeat(|state| group(state).or_else(colon))),
            })
        })
    })
}

fn cidr(state: State<'_>, rule: Rule) -> Step<'_> {
    let (family, digits) = match rule {
        Rule::Ipv4CidrLiteral => (Rule::Ipv4Literal, 2),
        _ => (Rule::Ipv6Literal, 3),
    };
    state.rule(rule, |state| {
        state.atomic(Atomicity::Atomic, |state| {
            state.sequence(|state| {
                address(state, family)
                    .and_then(|state| state.match_string("/"))
                    .and_then(|state| some(state, 1, digits, digit))
            })
        })
    })
}

fn integer(state: State<'_>) -> Step<'_> {
    fn octal(state: State<'_>) -> Step<'_> {
        state.rule(Rule::OctDigits, |state| {
            state.sequence(|state| {
                state.match_string("0").and_then(|state| some(state, 1, usize::MAX, |letter| letter.is_digit(8)))
            })
        })
    }
    fn hexadecimal(state: State<'_>) -> Step<'_> {
        state.sequence(|state| {
            state
                .match_string("0x")
                .and_then(|state| state.rule(Rule::HexDigits, |state| some(state, 1, usize::MAX, hex)))
        })
    }
    fn decimal(state: State<'_>) -> Step<'_> {
        state.rule(Rule::DecDigits, |state| some(state, 1, usize::MAX, digit))
    }
    state.atomic(Atomicity::CompoundAtomic, |state| {
        state.rule(Rule::IntLiteral, |state| {
            state.sequence(|state| {
                state
                    .optional(|state| state.match_string("-"))
                    .and_then(|state| octal(state).or_else(hexadecimal).or_else(decimal))
            })
        })
    })
}
