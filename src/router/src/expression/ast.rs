//! Expressions as trees, as they are written.

use super::grammar::{Rule, parse, shown};
use crate::pattern::Pattern;
use pest::error::{Error, ErrorVariant};
use pest::iterators::Pair;
use std::fmt::{self, Write};
use std::net::IpAddr;

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 100;

/// An expression.
#[derive(Debug, PartialEq)]
pub(crate) enum Node {
    /// All must hold; two or more.
    And(Vec<Node>),
    /// One must hold; two or more.
    Or(Vec<Node>),
    Not(Box<Node>),
    Test(Test),
}

/// A comparison of a field with a value.
#[derive(Debug, PartialEq)]
pub(crate) struct Test {
    pub(crate) field: String,
    /// The innermost first.
    pub(crate) transforms: Vec<Transform>,
    pub(crate) operator: Operator,
    pub(crate) value: Value,
}

/// What is made of a field before it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    Lower,
    /// One of several values is enough.
    Any,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Regex,
    Prefix,
    Suffix,
    GreaterOrEqual,
    Greater,
    LessOrEqual,
    Less,
    In,
    NotIn,
    Contains,
}

/// The right side of a comparison.
#[derive(Debug, PartialEq)]
pub(crate) enum Value {
    Text(Box<str>),
    Regex(Box<Pattern>),
    Int(i64),
    Ip(IpAddr),
    Network(Network),
}

/// Addresses with a common start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// Reads `address/length`; what follows the length must be zero. The errors are worded as in Kong.
    fn parse(text: &str) -> Result<Self, String> {
        let network = Network::covering(text)?;
        if bits(network.address) & !network.mask() != 0 {
            return Err("host part of address was not zero".to_owned());
        }
        Ok(network)
    }

    /// Reads `address/length` with any address of the network.
    pub(crate) fn covering(text: &str) -> Result<Self, String> {
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        let unread = |part: &str, fault: &dyn fmt::Display| format!("couldn't parse {part} in network: {fault}");
        // Said of the family that the literal is written in.
        let address: IpAddr = if address.contains(':') {
            address.parse::<std::net::Ipv6Addr>().map_err(|fault| unread("address", &fault))?.into()
        } else {
            address.parse::<std::net::Ipv4Addr>().map_err(|fault| unread("address", &fault))?.into()
        };
        let length: u8 = length.parse().map_err(|fault| unread("length", &fault))?;
        let (family, most) = if address.is_ipv4() { ("Ipv4", 32) } else { ("Ipv6", 128) };
        if length > most {
            return Err(format!(
                "invalid length for network: Network length {length} is too long for {family} (maximum: {most})"
            ));
        }
        Ok(Network { address, length })
    }

    /// Set where addresses must agree, in the upper bits.
    fn mask(self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0)
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && (bits(self.address) ^ bits(address)) & self.mask() == 0
    }
}

/// An address in the upper bits.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

impl Node {
    /// Reads an expression. The error points at the place, in the words of Kong's parser.
    pub(crate) fn parse(text: &str) -> Result<Node, String> {
        if depth(text) > MAX_DEPTH {
            return Err(format!("the expression is nested more than {MAX_DEPTH} levels deep"));
        }
        let mut pairs = parse(text)?;
        let expression =
            pairs.next().and_then(|matcher| matcher.into_inner().next()).ok_or("the expression is empty")?;
        node(expression).map_err(|error| shown(*error))
    }
}

/// The deepest nesting of parentheses outside of texts.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            'r' if rest.starts_with("#\"") => rest = rest[2..].split_once("\"#").map_or("", |(_, after)| after),
            '"' => {
                let mut escaped = false;
                let end = rest.find(|letter| match letter {
                    _ if std::mem::take(&mut escaped) => false,
                    '\\' => {
                        escaped = true;
                        false
                    }
                    letter => letter == '"',
                });
                rest = end.map_or("", |end| &rest[end + 1..]);
            }
            '(' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

type Built<T> = Result<T, Box<Error<Rule>>>;

fn fault<T>(message: impl Into<String>, pair: &Pair<'_, Rule>) -> Built<T> {
    let message = message.into();
    Err(Box::new(Error::new_from_span(ErrorVariant::CustomError { message }, pair.as_span())))
}

/// An `expression`: terms, joined by `||` first.
fn node(pair: Pair<'_, Rule>) -> Built<Node> {
    let mut groups = vec![Vec::new()];
    for pair in pair.into_inner() {
        match pair.as_rule() {
            Rule::AndOp => groups.push(Vec::new()),
            Rule::OrOp => {}
            _ => {
                let term = term(pair)?;
                if let Some(group) = groups.last_mut() {
                    group.push(term);
                }
            }
        }
    }
    Ok(joined(groups.into_iter().map(|group| joined(group, Node::Or)).collect(), Node::And))
}

/// The only item itself, several as one.
fn joined(mut items: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match items.pop() {
        Some(only) if items.is_empty() => only,
        last => {
            items.extend(last);
            join(items)
        }
    }
}

fn only(pair: Pair<'_, Rule>) -> Pair<'_, Rule> {
    pair.into_inner().next().expect("the grammar gives this rule a child")
}

fn term(pair: Pair<'_, Rule>) -> Built<Node> {
    let inner = only(pair);
    if inner.as_rule() == Rule::Predicate {
        return test(inner).map(Node::Test);
    }
    let mut negated = false;
    let mut found = None;
    for pair in inner.into_inner() {
        match pair.as_rule() {
            Rule::NotOp => negated = true,
            _ => found = Some(node(pair)?),
        }
    }
    let node = found.expect("parentheses hold an expression");
    Ok(if negated { Node::Not(Box::new(node)) } else { node })
}

fn test(pair: Pair<'_, Rule>) -> Built<Test> {
    let mut inner = pair.into_inner();
    let mut next = || inner.next().expect("a predicate has three parts");
    let (left, sign, right) = (next(), next(), next());
    let mut transforms = Vec::new();
    let field = field(left, &mut transforms)?;
    let operator = operator(sign.as_str());
    let value = match (operator, value(&right)?) {
        (Operator::Regex, Value::Text(source)) => match Pattern::strict(&source) {
            Ok(pattern) => Value::Regex(Box::new(pattern)),
            Err(message) => return fault(message, &right),
        },
        (Operator::Regex, _) => return fault("regex operator can only be used with String operands", &right),
        (_, value) => value,
    };
    Ok(Test { field, transforms, operator, value })
}

fn field(pair: Pair<'_, Rule>, transforms: &mut Vec<Transform>) -> Built<String> {
    let inner = only(pair);
    if inner.as_rule() == Rule::Ident {
        return Ok(inner.as_str().to_owned());
    }
    let mut parts = inner.clone().into_inner();
    let mut next = || parts.next().expect("a transformation has a name and an argument");
    let (name, argument) = (next(), next());
    let field = field(argument, transforms)?;
    transforms.push(match name.as_str() {
        "lower" => Transform::Lower,
        "any" => Transform::Any,
        unknown => return fault(format!("unknown transformation function: {unknown}"), &inner),
    });
    Ok(field)
}

fn operator(sign: &str) -> Operator {
    match sign {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "~" => Operator::Regex,
        "^=" => Operator::Prefix,
        "=^" => Operator::Suffix,
        ">=" => Operator::GreaterOrEqual,
        ">" => Operator::Greater,
        "<=" => Operator::LessOrEqual,
        "<" => Operator::Less,
        "in" => Operator::In,
        "contains" => Operator::Contains,
        // Two words, whatever stands between them.
        _ => Operator::NotIn,
    }
}

fn value(pair: &Pair<'_, Rule>) -> Built<Value> {
    let literal = only(pair.clone());
    let text = literal.as_str();
    match literal.as_rule() {
        Rule::StrLiteral => {
            let letters = literal.into_inner().map(|part| match part.as_str() {
                "\\n" => '\n',
                "\\r" => '\r',
                "\\t" => '\t',
                part => part.chars().last().unwrap_or_default(),
            });
            Ok(Value::Text(letters.collect::<String>().into()))
        }
        Rule::RawstrLiteral => Ok(Value::Text(text[3..text.len() - 2].into())),
        Rule::Ipv4Literal => match text.parse::<std::net::Ipv4Addr>() {
            Ok(address) => Ok(Value::Ip(address.into())),
            Err(error) => fault(error.to_string(), &literal),
        },
        Rule::Ipv6Literal => match text.parse::<std::net::Ipv6Addr>() {
            Ok(address) => Ok(Value::Ip(address.into())),
            Err(error) => fault(error.to_string(), &literal),
        },
        Rule::IntLiteral => integer(literal),
        _ => match Network::parse(text) {
            Ok(network) => Ok(Value::Network(network)),
            Err(message) => fault(message, &literal),
        },
    }
}

fn integer(pair: Pair<'_, Rule>) -> Built<Value> {
    let negative = pair.as_str().starts_with('-');
    let digits = only(pair);
    let radix = match digits.as_rule() {
        Rule::HexDigits => 16,
        Rule::OctDigits => 8,
        _ => 10,
    };
    match i64::from_str_radix(digits.as_str(), radix) {
        Ok(number) => Ok(Value::Int(if negative { -number } else { number })),
        Err(error) => fault(error.to_string(), &digits),
    }
}

impl fmt::Display for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = |items: &[Node], sign: &str| {
            for (index, item) in items.iter().enumerate() {
                out.write_str(if index == 0 { "" } else { sign })?;
                match item {
                    Node::And(_) | Node::Or(_) => write!(out, "({item})")?,
                    _ => write!(out, "{item}")?,
                }
            }
            Ok(())
        };
        match self {
            Node::And(items) => list(items, " && "),
            Node::Or(items) => list(items, " || "),
            Node::Not(inner) => write!(out, "!({inner})"),
            Node::Test(test) => write!(out, "{test}"),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for transform in self.transforms.iter().rev() {
            out.write_str(if *transform == Transform::Lower { "lower(" } else { "any(" })?;
        }
        out.write_str(&self.field)?;
        self.transforms.iter().try_for_each(|_| out.write_char(')'))?;
        let sign = match self.operator {
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Regex => "~",
            Operator::Prefix => "^=",
            Operator::Suffix => "=^",
            Operator::GreaterOrEqual => ">=",
            Operator::Greater => ">",
            Operator::LessOrEqual => "<=",
            Operator::Less => "<",
            Operator::In => "in",
            Operator::NotIn => "not in",
            Operator::Contains => "contains",
        };
        write!(out, " {sign} ")?;
        match &self.value {
            Value::Text(text) => quoted(out, text),
            Value::Regex(pattern) => quoted(out, pattern.source()),
            Value::Int(number) => write!(out, "{number}"),
            Value::Ip(address) => write!(out, "{address}"),
            Value::Network(network) => write!(out, "{}/{}", network.address, network.length),
        }
    }
}

fn quoted(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(out, "\\{letter}")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            letter => out.write_char(letter)?,
        }
    }
    out.write_char('"')
}
