//! Numbers that follow the variables of loops: `turn`, `turn*64+1`.
//!
//! Contract: sums and differences of products of numbers and variables, without brackets. Evaluation is exact, and
//! refuses what does not fit 128 bits. Parsing never panics and costs the length of the text.

/// A sum of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression(Vec<Product>);

/// Factors, and whether they are subtracted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Product {
    is_negative: bool,
    factors: Vec<Factor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Factor {
    Number(u64),
    /// The variable of a loop, by depth from the outermost.
    Variable(usize),
}

/// Whether a text can be the name of a variable or a buffer.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |one: char| one.is_ascii_alphanumeric() || one == '_';
    text.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_') && text.chars().all(is_part)
}

impl Expression {
    /// Parses an expression; `variables` are those of the loops around it, from the outside. The complaint says what is
    /// wrong.
    pub(crate) fn parse(text: &str, variables: &[Option<String>]) -> Result<Expression, String> {
        let mut products = Vec::new();
        let mut rest = text.trim();
        let mut is_negative = false;
        if let Some(behind) = rest.strip_prefix('-') {
            (is_negative, rest) = (true, behind);
        }
        loop {
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            let factors = rest[..end].split('*').map(|text| factor(text.trim(), variables));
            products.push(Product { is_negative, factors: factors.collect::<Result<_, String>>()? });
            match rest[end..].chars().next() {
                None => return Ok(Expression(products)),
                Some(sign) => (is_negative, rest) = (sign == '-', &rest[end + 1..]),
            }
        }
    }

    /// Its value in a turn of each loop; `None` if it does not fit.
    pub fn value(&self, turns: &[u64]) -> Option<i128> {
        self.0.iter().try_fold(0i128, |sum, product| {
            let factors = product.factors.iter().map(|factor| match factor {
                Factor::Number(number) => Some(*number),
                Factor::Variable(index) => turns.get(*index).copied(),
            });
            let value =
                factors.into_iter().try_fold(1i128, |all, factor| all.checked_mul(i128::from(factor?)))?;
            if product.is_negative { sum.checked_sub(value) } else { sum.checked_add(value) }
        })
    }
}

fn factor(text: &str, variables: &[Option<String>]) -> Result<Factor, String> {
    if is_name(text) {
        // The innermost one, if several have the name.
        let index = variables.iter().rposition(|variable| variable.as_deref() == Some(text));
        return index
            .map(Factor::Variable)
            .ok_or_else(|| format!("there is no loop with variable {text:?} around it"));
    }
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.map(Factor::Number).ok_or_else(|| format!("{text:?} is neither a number nor a variable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_digits_and_underscores() {
        for (text, expected) in [
            ("a", true),
            ("_", true),
            ("a_1", true),
            ("Row", true),
            ("", false),
            ("1a", false),
            ("a-b", false),
            ("a b", false),
            ("a.", false),
            ("é", false),
            ("aé", false),
        ] {
            assert_eq!(is_name(text), expected, "{text}");
        }
    }

    #[test]
    fn sums_of_products_follow_their_variables() {
        let variables = [Some("row".to_owned()), None, Some("turn".to_owned())];
        let value = |text: &str| Expression::parse(text, &variables).unwrap().value(&[5, 9, 3]);
        for (text, expected) in [
            ("7", 7),
            ("0x10", 16),
            ("turn", 3),
            (" row * 64 + turn ", 323),
            ("-turn", -3),
            ("10 - turn*2 - 1", 3),
            ("turn*turn*row", 45),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        let large = "*0xffffffffffffffff".repeat(3);
        assert_eq!(value(&large[1..]), None, "past 128 bits");
        for text in
            ["", "+", "1+", "*", "turn turn", "other", "1.5", "(1)", "é", "--1", "99999999999999999999"]
        {
            assert!(Expression::parse(text, &variables).is_err(), "{text}");
        }
    }
}
