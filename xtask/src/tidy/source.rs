//! Rust source with its comments and texts blanked out, so that rules look at code only.

/// The same text, as long and with the same lines, with a blank for every character of a comment, a string or a
/// character literal.
pub(crate) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let length = comment(&chars[at..]).or_else(|| literal(&chars, at)).unwrap_or(0);
        if length == 0 {
            code.push(chars[at]);
            at += 1;
            continue;
        }
        code.extend(chars[at..at + length].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
        at += length;
    }
    code
}

/// The length of the comment that begins here.
fn comment(rest: &[char]) -> Option<usize> {
    match rest {
        ['/', '/', ..] => Some(rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())),
        ['/', '*', ..] => {
            let (mut depth, mut at) = (0_u32, 0);
            while at < rest.len() {
                match &rest[at..] {
                    ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
                    ['*', '/', ..] if depth == 1 => return Some(at + 2),
                    ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
            }
            Some(rest.len())
        }
        _ => None,
    }
}

/// The length of the string or character literal that begins at `at`.
fn literal(chars: &[char], at: usize) -> Option<usize> {
    let rest = &chars[at..];
    match rest.first()? {
        '"' => Some(quoted(rest)),
        'r' if at == 0 || !is_name(chars[at - 1]) || chars[at - 1] == 'b' => raw(rest),
        // A lifetime has no closing quote behind its first character.
        '\'' => match rest {
            ['\'', '\\', _, tail @ ..] => tail.iter().position(|c| *c == '\'').map(|end| end + 4),
            ['\'', _, '\'', ..] => Some(3),
            _ => None,
        },
        _ => None,
    }
}

fn quoted(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    let begin = 1 + hashes;
    if rest.get(begin) != Some(&'"') {
        return None;
    }
    let ends = |at: usize| {
        rest[at] == '"' && rest[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    Some((begin + 1..rest.len()).find(|at| ends(*at)).map_or(rest.len(), |at| at + 1 + hashes))
}

pub(crate) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Code split into what is compiled always and what is compiled for tests only: in either text the other part is
/// blank, and lines keep their numbers. Expects the result of [`code_only`].
pub(crate) fn split_tests(code: &str) -> (String, String) {
    let (mut always, mut tests) = (String::new(), String::new());
    let mut rest = code;
    while let Some(begin) = test_attribute(rest) {
        let end = begin + item_length(&rest[begin..]);
        always.push_str(&rest[..begin]);
        tests.push_str(&blank(&rest[..begin]));
        always.push_str(&blank(&rest[begin..end]));
        tests.push_str(&rest[begin..end]);
        rest = &rest[end..];
    }
    always.push_str(rest);
    tests.push_str(&blank(rest));
    (always, tests)
}

/// Where the next item that is compiled for tests only begins, with its attribute.
fn test_attribute(code: &str) -> Option<usize> {
    code.match_indices("#[cfg(").map(|(at, _)| at).find(|at| {
        let end = code[*at..].find(']').map_or(code.len(), |end| at + end);
        let attribute = &code[*at..end];
        words(attribute).any(|(_, word)| word == "test") && !attribute.contains("not(test)")
    })
}

/// The length of an item: to its closing brace, or to a semicolon before any brace.
fn item_length(code: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn blank(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// The names and numbers in `code`, each with where it begins.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.split(|c| !is_name(c))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr().addr() - code.as_ptr().addr(), word))
}

/// The number of the line that holds the byte `at`, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_blank_and_lines_stay() {
        let check = |text: &str, expected: &str| assert_eq!(code_only(text), expected, "{text}");
        check("a // tokio\nb", "a         \nb");
        check("a /* x /* y */ z */ b", "a                   b");
        check(r#"f("tok\"io", 'x', '\'', b)"#, "f(         ,    ,     , b)");
        check("r#\"a\"b\"# c", "         c");
        check("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
        check("for", "for");
    }

    #[test]
    fn code_for_tests_is_told_apart() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { {} } }\n#[cfg(not(test))]\nfn c() {}\n";
        let (always, tests) = split_tests(code);
        assert!(always.contains("fn a") && always.contains("fn c") && !always.contains("fn b"));
        assert!(tests.contains("fn b") && !tests.contains("fn a"));
        assert_eq!(line_of(&tests, tests.find("fn b").unwrap()), 3);
    }
}
