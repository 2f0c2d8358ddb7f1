//! A call of Thrift from a workload's parameters: each is a field, or a value without one, as a word of our template.
//!
//! The codec encodes it. Invariant: a type is written with its value, or without where it has none.

use super::config::{Parameter, Style};
use super::template_words::{TemplateWords, size_of};

/// Types whose values are numbers, with the least and the most of them.
const INTEGERS: [(&str, i64, i64); 4] = [
    ("byte", i8::MIN as i64, i8::MAX as i64),
    ("i16", i16::MIN as i64, i16::MAX as i64),
    ("i32", i32::MIN as i64, i32::MAX as i64),
    ("i64", i64::MIN, i64::MAX),
];
const ACCEPTED: &str = "stop, void, bool, byte, double, i16, i32, i64, string, struct, map, set, list";

/// The template of a call.
///
/// # Errors
/// What is wrong with a parameter.
pub(super) fn call(
    method: &str,
    parameters: &[Parameter],
    words: &mut TemplateWords,
) -> Result<String, String> {
    let mut template = method.to_owned();
    for (index, parameter) in parameters.iter().enumerate() {
        let word = field(index, parameter, words).map_err(|what| format!("parameter {index}: {what}"))?;
        template = format!("{template} {word}");
    }
    Ok(template)
}

fn field(index: usize, parameter: &Parameter, words: &mut TemplateWords) -> Result<String, String> {
    let Some(kind) = parameter.kind.as_deref() else {
        return Err(format!("parameter type not specified; expected {ACCEPTED}"));
    };
    let id = parameter.id.map_or(String::new(), |id| format!("{id}:"));
    let needs_id = || match parameter.id {
        Some(_) => Ok(()),
        None => Err(format!("a {kind} requires 'id'")),
    };
    let contains = || {
        let contained = parameter.contains.as_deref();
        contained.ok_or_else(|| format!("a {kind} requires 'contains', such as \"i32\""))
    };
    if parameter.contains.is_some() && !matches!(kind, "list" | "set" | "map") {
        return Err(format!("'contains' requires a list, set or map, not {kind}"));
    }
    Ok(match kind {
        "stop" => "stop".to_owned(),
        "void" => format!("{id}void"),
        "struct" => {
            needs_id()?;
            format!("{id}struct")
        }
        "list" | "set" | "map" => {
            needs_id()?;
            format!("{id}{kind}<{}>={}", contains()?, size_of(parameter))
        }
        "string" => {
            let word = words.word(index, parameter)?;
            format!("{id}string={}", if word == "''" { "" } else { &word })
        }
        "bool" | "double" | "byte" | "i16" | "i32" | "i64" => {
            format!("{id}{kind}={}", scalar(kind, index, parameter, words)?)
        }
        _ => return Err(format!("unknown parameter type: {kind}; expected {ACCEPTED}")),
    })
}

/// The value of a type of fixed length.
fn scalar(
    kind: &str,
    index: usize,
    parameter: &Parameter,
    words: &mut TemplateWords,
) -> Result<String, String> {
    if parameter.size.is_some() || parameter.num.is_some() {
        words.warn(index, &format!("size and num have no effect with type {kind}"));
    }
    let seed = parameter.seed.unwrap_or(index as u64);
    let range = INTEGERS.iter().find(|(name, ..)| *name == kind).map(|(_, least, most)| (*least, *most));
    words.note_unused(index, parameter);
    match (parameter.style, parameter.regenerate) {
        (Style::Random, true) => Ok("{random}".to_owned()),
        (Style::Random, false) => Ok(drawn(kind, range, words.drawn(index))),
        (Style::Static, _) if kind == "bool" => Ok((parameter.seed != Some(0)).to_string()),
        (Style::Static, _) => match range {
            Some((_, most)) if seed > most as u64 => {
                Err(format!("seed {seed} exceeds {most}, the most of a {kind}"))
            }
            _ => Ok(seed.to_string()),
        },
    }
}

/// A value that is drawn once: any of its type, of a double from 0 to 1.
fn drawn(kind: &str, range: Option<(i64, i64)>, drawn: u64) -> String {
    match range {
        Some((least, most)) => {
            // Types are as wide as a power of two: the highest bits are as good as any.
            let width = (i128::from(most) - i128::from(least) + 1) as u128;
            (i128::from(least) + ((u128::from(drawn) * width) >> 64) as i128).to_string()
        }
        None if kind == "bool" => (drawn >> 63 == 1).to_string(),
        None => ((drawn >> 11) as f64 / (1_u64 << 53) as f64).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::request::{Dialect, Request};

    fn call(workload: &str) -> Result<String, String> {
        let config = Config::parse("f", &format!("[[workload]]\nmethod = 'add'\n{workload}")).unwrap();
        Request::of(Dialect::Thrift, &config.workloads[0], 7).map(|request| request.template)
    }

    #[test]
    fn thrift_fields_are_encoded() {
        let table = [
            ("", "add"),
            (
                "parameter = [{type = 'i32', id = 1, seed = 15}, {type = 'i32', id = 2, seed = 10}]",
                "add 1:i32=15 2:i32=10",
            ),
            (
                "parameter = [{type = 'i32', id = 1, style = 'random', regenerate = true}]",
                "add 1:i32={random}",
            ),
            (
                "parameter = [{type = 'struct', id = 2}, {type = 'double', id = 1, seed = 3}, {type = 'stop'}]",
                "add 2:struct 1:double=3 stop",
            ),
            (
                "parameter = [{type = 'list', id = 4, size = 2, contains = 'i32'}, {type = 'i32'}, {type = 'i32'}]",
                "add 4:list<i32>=2 i32=1 i32=2",
            ),
            (
                "parameter = [{type = 'map', id = 4, contains = 'string,i64'}, {type = 'string', size = 3}, {type = 'i64'}]",
                "add 4:map<string,i64>=1 string=001 i64=2",
            ),
            (
                "parameter = [{type = 'bool', id = 1}, {type = 'bool', id = 2, seed = 0}, {type = 'void', id = 3}]",
                "add 1:bool=true 2:bool=false 3:void",
            ),
            ("parameter = [{type = 'i16', size = 2, seed = 5}]", "add i16=5"),
            ("parameter = [{type = 'string', id = 1, size = 0}]", "add 1:string="),
            (
                "parameter = [{type = 'string', id = 1, size = 5, style = 'random', regenerate = true}]",
                "add 1:string={random:5}",
            ),
        ];
        for (workload, expected) in table {
            assert_eq!(call(workload).as_deref(), Ok(expected), "{workload}");
        }
        for kind in ["byte", "i16", "i64", "bool", "double"] {
            let template =
                call(&format!("parameter = [{{type = '{kind}', id = 1, style = 'random'}}]")).unwrap();
            let value = template.strip_prefix(&format!("add 1:{kind}=")).unwrap();
            let is_read = match kind {
                "byte" => value.parse::<i8>().is_ok(),
                "i16" => value.parse::<i16>().is_ok(),
                "i64" => value.parse::<i64>().is_ok(),
                "bool" => value.parse::<bool>().is_ok(),
                _ => value.parse::<f64>().is_ok_and(|value| (0.0..1.0).contains(&value)),
            };
            assert!(is_read, "{template}");
        }
    }

    #[test]
    fn invalid_fields_are_rejected() {
        let table = [
            ("parameter = [{}]", "parameter 0: parameter type not specified; expected stop, void,"),
            ("parameter = [{type = 'u8'}]", "parameter 0: unknown parameter type: u8; expected stop,"),
            ("parameter = [{type = 'struct'}]", "parameter 0: a struct requires 'id'"),
            ("parameter = [{type = 'list', id = 1}]", "parameter 0: a list requires 'contains'"),
            (
                "parameter = [{type = 'i32', contains = 'i32'}]",
                "parameter 0: 'contains' requires a list, set or map",
            ),
            (
                "parameter = [{type = 'byte', seed = 200}]",
                "parameter 0: seed 200 exceeds 127, the most of a byte",
            ),
        ];
        for (workload, message) in table {
            let error = call(workload).unwrap_err();
            assert!(error.starts_with(message), "{workload}: {error}");
        }
    }
}
