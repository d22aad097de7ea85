//! Formulas: a figure as arithmetic on what its analysis uses, `fcf * (1 + growth) / (wacc - growth)`.
//!
//! `+ - * / ^`, parentheses, numbers, and names of letters, digits, `_`, `.` and `/`, beginning with
//! a letter. `^` binds to the right and before a sign. A name is read with the longest run of its
//! characters, so a division by a name needs a space before it.

/// Most bytes of a formula.
pub const FORMULA_BYTES_MAX: usize = 1_024;
/// How deep parentheses, signs and powers may nest.
const DEPTH_MAX: usize = 32;

/// Why a formula cannot be read: a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Where, from 1.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at character {}: {}", self.at, self.what)
    }
}

/// A formula that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// A number.
    Number(f64),
    /// Something that the analysis uses.
    Name(String),
    /// The opposite of it.
    Minus(Box<Formula>),
    /// Two of them, with `+`, `-`, `*`, `/` or `^` between.
    Two(Box<Formula>, char, Box<Formula>),
}

impl Formula {
    /// Reads a formula.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > FORMULA_BYTES_MAX {
            return Err(Error {
                at: FORMULA_BYTES_MAX,
                what: format!("it has more than {FORMULA_BYTES_MAX} bytes"),
            });
        }
        let mut reader = Reader {
            left: text.chars().collect(),
            at: 0,
        };
        let formula = reader.sum(0)?;
        match reader.next() {
            None => Ok(formula),
            Some(other) => Err(reader.wrong(format!("{other:?} is not expected"))),
        }
    }

    /// The names in it, in order.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Minus(one) => one.names(),
            Self::Two(one, _, other) => [one.names(), other.names()].concat(),
        }
    }

    /// Its value; none where a name has none, or where it is not finite.
    pub fn value(&self, of: &impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(number) => *number,
            Self::Name(name) => of(name)?,
            Self::Minus(one) => -one.value(of)?,
            Self::Two(one, sign, other) => {
                let (one, other) = (one.value(of)?, other.value(of)?);
                match sign {
                    '+' => one + other,
                    '-' => one - other,
                    '*' => one * other,
                    '/' => one / other,
                    _ => one.powf(other),
                }
            }
        };
        value.is_finite().then_some(value)
    }
}

struct Reader {
    left: Vec<char>,
    at: usize,
}

impl Reader {
    /// The next character that is no space.
    fn next(&mut self) -> Option<char> {
        while self.left.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.left.get(self.at).copied()
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        Error {
            at: self.at + 1,
            what: what.into(),
        }
    }

    fn two(&mut self, one: Formula, sign: char, other: Formula) -> Formula {
        Formula::Two(Box::new(one), sign, Box::new(other))
    }

    fn sum(&mut self, depth: usize) -> Result<Formula, Error> {
        let mut one = self.product(depth)?;
        while let Some(sign @ ('+' | '-')) = self.next() {
            self.at += 1;
            let other = self.product(depth)?;
            one = self.two(one, sign, other);
        }
        Ok(one)
    }

    fn product(&mut self, depth: usize) -> Result<Formula, Error> {
        let mut one = self.signed(depth)?;
        while let Some(sign @ ('*' | '/')) = self.next() {
            self.at += 1;
            let other = self.signed(depth)?;
            one = self.two(one, sign, other);
        }
        Ok(one)
    }

    fn signed(&mut self, depth: usize) -> Result<Formula, Error> {
        if depth > DEPTH_MAX {
            return Err(self.wrong(format!("it nests more than {DEPTH_MAX} deep")));
        }
        if self.next() == Some('-') {
            self.at += 1;
            return Ok(Formula::Minus(Box::new(self.signed(depth + 1)?)));
        }
        let one = self.atom(depth)?;
        if self.next() == Some('^') {
            self.at += 1;
            let other = self.signed(depth + 1)?;
            return Ok(self.two(one, '^', other));
        }
        Ok(one)
    }

    fn atom(&mut self, depth: usize) -> Result<Formula, Error> {
        match self.next() {
            Some('(') => {
                self.at += 1;
                let inner = self.sum(depth + 1)?;
                match self.next() {
                    Some(')') => {
                        self.at += 1;
                        Ok(inner)
                    }
                    _ => Err(self.wrong("a closing parenthesis is missing")),
                }
            }
            Some(c) if c.is_ascii_digit() => {
                let digits = self.run(|c| c.is_ascii_digit() || c == '.');
                match digits.parse() {
                    Ok(number) => Ok(Formula::Number(number)),
                    Err(_) => Err(self.wrong(format!("{digits} is no number"))),
                }
            }
            Some(c) if c.is_alphabetic() => {
                Ok(Formula::Name(self.run(|c| {
                    c.is_alphanumeric() || matches!(c, '_' | '.' | '/')
                })))
            }
            Some(other) => Err(self.wrong(format!("{other:?} is not expected"))),
            None => Err(self.wrong("it ends where a number or a name is expected")),
        }
    }

    fn run(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let rest = self.left.iter().skip(self.at);
        let run: String = rest.take_while(|c| is_part(**c)).collect();
        self.at += run.chars().count();
        run
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Option<f64> {
        let of = |name: &str| match name {
            "fcf" => Some(8.0),
            "growth" => Some(0.02),
            "wacc" => Some(0.1),
            "clauses/cap" => Some(3.0),
            _ => None,
        };
        Formula::parse(text).unwrap().value(&of)
    }

    #[test]
    fn formulas_are_calculated_as_on_paper() {
        for (text, expected) in [
            ("fcf * (1 + growth) / (wacc - growth)", Some(102.0)),
            ("2 + 3 * 4", Some(14.0)),
            ("(2 + 3) * 4", Some(20.0)),
            ("10 - 4 - 3", Some(3.0)),
            ("16 / 4 / 2", Some(2.0)),
            ("2 ^ 3 ^ 2", Some(512.0)),
            ("-2 ^ 2", Some(-4.0)),
            ("- -3", Some(3.0)),
            ("clauses/cap * 2", Some(6.0)),
            ("fcf / 0", None),
            ("price * 2", None),
        ] {
            match (value(text), expected) {
                (Some(value), Some(expected)) => {
                    assert!((value - expected).abs() < 1e-9, "{text} is {value}");
                }
                (value, expected) => assert_eq!(value, expected, "{text}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_place() {
        for (text, at) in [
            ("", 1),
            ("2 +", 4),
            ("(2", 3),
            ("2 3", 3),
            ("2 % 3", 3),
            ("1.2.3", 6),
        ] {
            let error = Formula::parse(text).unwrap_err();
            assert_eq!(error.at, at, "{text:?}: {error}");
        }
        for deep in ["(".repeat(500), "-".repeat(500), "2^".repeat(400)] {
            assert!(Formula::parse(&deep).unwrap_err().what.contains("deep"));
        }
        assert!(Formula::parse(&"1+".repeat(600)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail_otherwise(text in "\\PC{0,200}") {
            if let Ok(formula) = Formula::parse(&text) {
                let _ = (formula.names(), formula.value(&|_| Some(1.0)));
            }
        }
    }
}
