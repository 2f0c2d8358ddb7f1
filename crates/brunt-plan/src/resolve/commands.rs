//! Commands of the user's own: which of them a class sends and how often, and all of a plan in one list.
//!
//! A class has the list of its `[[class]]` table, else that of the top level. Invariant: once the classes are settled,
//! the weights of each class's commands are counted in the list of the plan.

use super::{ErrorContext, RUN, Resolved};
use crate::mix::{Command, CommandSpec, Mix, named};
use crate::op::{COMMANDS_MAX, OpKind, OpName};
use crate::plan::{Class, Plan, Protocol};
use crate::spec::{ClassSpec, PlanSpec, RunSpec};

/// The commands that a class may send.
pub(super) fn of_class<'a>(run: &'a RunSpec, class: &'a ClassSpec) -> &'a [CommandSpec] {
    class.command.as_deref().or(run.command.as_deref()).unwrap_or_default()
}

/// What a class sends; the weights of commands are counted in its own list.
pub(super) fn mix(
    context: &ErrorContext<'_>,
    given: Option<&Mix>,
    commands: &[CommandSpec],
) -> Resolved<Mix> {
    let weights = || commands.iter().map(|command| command.weight.unwrap_or(1)).collect::<Vec<_>>();
    let is_weighed = commands.iter().any(|command| command.weight.is_some());
    let mix = match given {
        None if commands.is_empty() => return Ok(Mix::usual()),
        None => Mix::default().with_commands(weights()),
        Some(mix) if mix.contains(OpKind::Raw) && is_weighed => {
            return Err(context.conflicts("mix with raw", "weights in --command (NAME@WEIGHT=COMMAND)"));
        }
        Some(mix) if is_weighed => mix.clone().with_commands(weights()),
        Some(mix)
            if mix.contains(OpKind::Raw) && !commands.is_empty() && mix.commands.len() != commands.len() =>
        {
            let accepted =
                format!("one weight per --command, e.g. raw={}", vec!["1"; commands.len()].join("+"));
            return Err(context.invalid("mix", mix, accepted));
        }
        Some(mix) => Some(mix.clone()),
    };
    mix.ok_or_else(|| context.exceeds("command", "weights, whose sum", "4294967295"))
}

/// Puts the commands of all classes into one list, and counts the classes' weights in that. A class that has a command which another
/// has under the same name sends the same one.
pub(super) fn merge(spec: &mut PlanSpec, classes: &mut [Class]) -> Resolved {
    let bare = |command: &CommandSpec| CommandSpec { weight: None, ..command.clone() };
    let mut all: Vec<CommandSpec> = spec.run.command.iter().flatten().map(bare).collect();
    let of_run: Vec<usize> = (0..all.len()).collect();
    let mut places: Vec<Vec<usize>> = Vec::with_capacity(classes.len());
    for class in &mut spec.classes {
        let Some(own) = class.command.take() else {
            places.push(of_run.clone());
            continue;
        };
        let mut of_class: Vec<usize> = Vec::new();
        for command in own.iter().map(bare) {
            let is_same = |at: &usize| all[*at] == command && !of_class.contains(at);
            let place = (0..all.len()).find(is_same).unwrap_or(all.len());
            if place == all.len() {
                all.push(command);
            }
            of_class.push(place);
        }
        places.push(of_class);
    }
    if all.len() > COMMANDS_MAX {
        return Err(RUN.exceeds("command", format!("{} commands", all.len()), COMMANDS_MAX));
    }
    for (index, class) in classes.iter_mut().enumerate().filter(|(_, class)| class.trace.is_none()) {
        let of_class = &places[index];
        if class.mix.contains(OpKind::Raw) {
            // Without any command it is refused once its protocol is known.
            let mut weights = vec![0; if of_class.is_empty() { 0 } else { all.len() }];
            class.mix.commands.iter().zip(of_class).for_each(|(weight, place)| weights[*place] = *weight);
            class.mix.commands = weights;
        }
        spec.classes[index].mix = Some(class.mix.clone());
    }
    spec.run.command = (!all.is_empty()).then_some(all);
    Ok(())
}

/// Has the plan a protocol of commands, if it has commands?
pub(super) fn check(plan: &Plan) -> Resolved {
    let takes_commands = |protocol: &Protocol| protocol.supports(OpKind::Raw);
    if !plan.commands.is_empty() && !plan.protocols().iter().any(takes_commands) {
        let takes: Vec<&str> = Protocol::ALL.into_iter().filter(takes_commands).map(Protocol::name).collect();
        return Err(RUN.requires("command", format!("--protocol {}", takes.join(", "))));
    }
    Ok(())
}

/// Is every command sent by a class?
pub(super) fn check_weights(plan: &Plan) -> Resolved {
    let commands = plan.spec.run.command.as_deref().unwrap_or_default();
    let is_sent = |index: usize| {
        plan.classes.iter().any(|class| class.mix.commands.get(index).is_some_and(|weight| *weight > 0))
    };
    match commands.iter().enumerate().find(|(index, _)| !is_sent(*index)) {
        Some((_, command)) => {
            let accepted =
                "a command with a weight, in --mix (get=9,raw=1) or in --command (NAME@WEIGHT=COMMAND)";
            Err(RUN.invalid("command", command, accepted))
        }
        None => Ok(()),
    }
}

/// The commands with the names of their rows: none is that of another operation of the plan.
pub(super) fn with_names(run: &mut RunSpec, preload: bool, classes: &[Class]) -> Vec<Command> {
    let mut kinds: Vec<OpKind> = classes.iter().flat_map(Class::kinds).collect();
    kinds.extend(preload.then_some(OpKind::Set));
    let taken: Vec<OpName> =
        kinds.into_iter().filter(|kind| *kind != OpKind::Raw).map(OpName::from).collect();
    let commands = named(run.command.as_deref().unwrap_or_default(), &taken);
    run.command = (!commands.is_empty()).then(|| commands.iter().map(CommandSpec::from).collect());
    commands
}

/// Commands of Redis that need the string which preload stores under a key. Other commands write the key themselves, or fail
/// with WRONGTYPE where they find a string.
const COMMANDS_ON_STRINGS: &str = "BITCOUNT BITPOS COPY DEL DUMP EXISTS EXPIRE EXPIRETIME GET GETBIT GETDEL GETEX GETRANGE GETSET \
     LCS MGET OBJECT PERSIST PEXPIRE PTTL RENAME STRLEN SUBSTR TOUCH TTL TYPE UNLINK";

/// Does anything that the classes send need the data set? Every operation of --mix does; a command does whose argument is a key of
/// the data set, whole, and which reads or changes a string.
pub(super) fn read_data_set(commands: &[CommandSpec], classes: &[Class]) -> bool {
    let needs =
        |(command, weight): (&CommandSpec, &u32)| *weight > 0 && needs_stored_string(&command.template);
    classes.iter().filter(|class| class.trace.is_none()).any(|class| {
        let has_others = class.kinds().into_iter().any(|kind| kind != OpKind::Raw);
        has_others || commands.iter().zip(&class.mix.commands).any(needs)
    })
}

fn needs_stored_string(template: &str) -> bool {
    let mut words = template.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let name = words.next().unwrap_or_default().to_ascii_uppercase();
    COMMANDS_ON_STRINGS.split(' ').any(|known| known == name) && words.any(|word| word == "{key}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::resolved;
    use crate::plan::Plan;

    fn check(toml: &str, expected: Result<(&[&str], bool), &str>) {
        let toml = format!("protocol = 'resp2'\n{toml}");
        let said = |plan: &Plan| plan.classes.iter().map(|class| plan.mix_text(class)).collect::<Vec<_>>();
        match (resolved(&toml), expected) {
            (Ok(plan), Ok((mixes, preload))) => {
                assert_eq!(said(&plan), mixes, "{toml}");
                assert_eq!(plan.preload, preload, "{toml}");
                // What is written down of it is the same plan.
                let again = resolved(&plan.spec.to_toml()).unwrap();
                assert_eq!((&again.commands, said(&again)), (&plan.commands, said(&plan)), "{toml}");
            }
            (plan, expected) => {
                assert_eq!(plan.map_err(|error| error.to_string()), Err(expected.unwrap_err().to_owned()));
            }
        }
    }

    #[test]
    fn command_weights_count_in_the_class() {
        check("command = ['A {key}', 'put@3=B {key}', '@2=A x']", Ok((&["A=1,put=3,A#2=2"], false)));
        check("command = ['A@2=A {key}', 'B x']\nmix = 'get=4'", Ok((&["get=4,A=2,B=1"], true)));
        check("command = ['A {key}', 'B x']\nmix = 'get=4,raw=2+1'", Ok((&["get=4,A=2,B=1"], true)));
        check(
            "command = ['A@2=A {key}']\nmix = 'raw=1'",
            Err("--mix with raw cannot be used with weights in --command (NAME@WEIGHT=COMMAND)"),
        );
        check("command = ['@4294967295=A x', 'B y']", Err("--command weights, whose sum exceeds 4294967295"));
    }

    #[test]
    fn classes_have_commands_of_their_own() {
        check(
            "command = ['A x']\n[[class]]\ncommand = ['@2=B {key}', 'A x', 'B z']\n[[class]]\nmix = 'set=1,raw=4'\n\
             [[class]]\ncommand = ['@7=A x']",
            Ok((&["A=1,B=2,B#2=1", "set=1,A=4", "A=7"], true)),
        );
        check(
            "[[class]]\ncommand = ['A x']\n[[class]]\nmix = 'raw=1'",
            Err("--mix with raw (class 'class-2') requires --command"),
        );
        check(
            "[[class]]\ncommand = ['A x', 'B x']\nmix = 'raw=1'",
            Err("invalid value 'raw=1' for --mix: expected one weight per --command, e.g. raw=1+1"),
        );
    }

    #[test]
    fn unread_data_sets_are_not_preloaded() {
        check("command = ['PING', 'SET x {value}']", Ok((&["PING=1,SET=1"], false)));
        check("command = ['PING', 'SET x {value}']\npreload = true", Ok((&["PING=1,SET=1"], true)));
        check("command = ['PING', 'GET {key}']\nmix = 'raw=1+1'", Ok((&["PING=1,GET=1"], true)));
        check("command = ['@1=PING']\nmix = 'delete=1'", Ok((&["delete=1,PING=1"], true)));
        let of_trace = resolved("server = 'a'\ntrace = 't'\ntrace-layout = 'twitter'\nrate = 5").unwrap();
        assert!(!of_trace.preload);
        // A string under the key would be in the way, or nothing asks for it.
        check("command = ['HSET {key} f {value}']", Ok((&["HSET=1"], false)));
        check("command = ['SET {key} {value}', 'GET h:{key}']", Ok((&["SET=1,GET=1"], false)));
        check("command = ['HSET {key} f {value}', 'strlen \"{key}\"']", Ok((&["HSET=1,strlen=1"], true)));
    }
}
