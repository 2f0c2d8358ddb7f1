//! A request of any protocol: the one place where the protocols meet.
//!
//! Only choices: what bytes are is said by each protocol's grammar, what is answered by its `answer`. Invariant: numbering,
//! service times and faults are decided on [`Work`] alone, so they do not depend on the protocol.

use crate::command_context::CommandContext;
use crate::connection::WireProtocol;
use crate::grammar::{Parsed, Verb};
use crate::text::Command as TextCommand;
use crate::{binary, message, meta, resp, text};

/// A request as it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    Text(text::Command<'a>),
    Meta(meta::Command<'a>),
    Binary(binary::Frame<'a>),
    Resp(resp::Command<'a>),
    Message(message::Message<'a>),
}

/// What a request is to the queue and its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Concerns items: it has a number, takes service time and may meet a fault.
    Data {
        verb: Verb,
        /// The client wants no reply.
        is_silent: bool,
        /// It asks for one key, and quiet ones right behind it ask for more keys of the same retrieval.
        opens_batch: bool,
        /// It is such a quiet one.
        continues_batch: bool,
    },
    /// Anything else.
    Control,
}

/// Looks at the front of `input`. Values above `value_bytes_max` are refused, and long commands of unauthenticated clients.
/// Inline commands are written as arrays into `array` first.
pub(crate) fn parse<'a>(
    protocol: WireProtocol,
    input: &'a [u8],
    array: &'a mut Vec<u8>,
    value_bytes_max: u64,
    is_authenticated: bool,
) -> Parsed<Request<'a>> {
    match protocol {
        WireProtocol::Text if meta::is_meta(input) => meta::parse(input, value_bytes_max).map(Request::Meta),
        WireProtocol::Text => text::parse(input, value_bytes_max).map(Request::Text),
        WireProtocol::Binary => binary::parse(input, value_bytes_max).map(Request::Binary),
        WireProtocol::Inline if input.first() != Some(&b'*') => match resp::inline_to_array(input, array) {
            Ok(used) => match resp::parse(array, value_bytes_max, is_authenticated).map(of_words) {
                Parsed::Complete { request, .. } => Parsed::Complete { used, request },
                parsed => parsed,
            },
            Err(parsed) => parsed,
        },
        WireProtocol::Resp | WireProtocol::Inline => {
            resp::parse(input, value_bytes_max, is_authenticated).map(of_words)
        }
        WireProtocol::Echo => message::echo(input, value_bytes_max).map(Request::Message),
        WireProtocol::Ping => message::ping(input).map(Request::Message),
        WireProtocol::Thrift => message::thrift(input, value_bytes_max).map(Request::Message),
    }
}

fn of_words(words: resp::Words<'_>) -> Request<'_> {
    Request::Resp(resp::Command::of(words))
}

impl Request<'_> {
    /// What it is to the queue.
    pub(crate) fn work(&self) -> Work {
        let (verb, is_silent, opens_batch, continues_batch) = match self {
            Self::Text(TextCommand::Data(command)) => (Some(command.verb), command.noreply, false, false),
            Self::Text(_) => (None, false, false, false),
            // The first of a batch is told aloud, or it would not be known whose what follows is.
            Self::Meta(command) => (command.verb(), command.is_quiet(), true, command.is_quiet()),
            // All of a batch are quiet.
            Self::Binary(frame) => (frame.verb(), frame.is_quiet, frame.is_quiet, frame.is_quiet),
            Self::Resp(command) => (command.verb(), false, false, false),
            // Nothing is changed by it.
            Self::Message(message) => (message.is_data().then_some(Verb::Get), false, false, false),
        };
        let Some(verb) = verb else { return Work::Control };
        // A retrieval is answered, however quiet: by a miss that is not told, or by what ends its batch.
        let is_retrieval = verb.is_retrieval();
        Work::Data {
            verb,
            is_silent: is_silent && !is_retrieval,
            opens_batch: is_retrieval && opens_batch,
            continues_batch: is_retrieval && continues_batch,
        }
    }

    /// How many bytes behind it are a value that is to be thrown away.
    pub(crate) fn excess_bytes(&self) -> u64 {
        match self {
            Self::Text(TextCommand::TooLarge { body_bytes, .. }) => *body_bytes,
            Self::Text(_) | Self::Resp(_) | Self::Message(_) => 0,
            Self::Meta(command) => command.excess_bytes,
            Self::Binary(frame) => frame.excess_bytes,
        }
    }

    /// Is it allowed before login?
    pub(crate) fn is_allowed_before_login(&self) -> bool {
        match self {
            Self::Text(_) | Self::Meta(_) | Self::Message(_) => false,
            Self::Binary(frame) => frame.is_allowed_before_login(),
            Self::Resp(command) => command.is_allowed_before_login(),
        }
    }

    /// Carries out a request that is data, and writes the reply.
    pub(crate) fn execute(&self, context: &mut CommandContext<'_>) {
        match self {
            Self::Text(TextCommand::Data(command)) => text::answer::execute(command, context),
            Self::Text(_) => unreachable!("only data commands are data"),
            Self::Meta(command) => meta::answer::execute(command, context),
            Self::Binary(frame) => binary::answer::execute(frame, context),
            Self::Resp(command) => resp::answer::execute(command, context),
            Self::Message(message) => message.answer(context),
        }
    }

    /// Refuses a request that is data by script.
    pub(crate) fn refuse(&self, verb: Verb, context: &mut CommandContext<'_>) {
        match self {
            Self::Text(TextCommand::Data(command)) => text::answer::refuse(command, context),
            Self::Text(_) => unreachable!("only data commands are data"),
            Self::Meta(command) => meta::answer::refuse(command, verb, context),
            Self::Binary(frame) => binary::answer::refuse(frame, verb, context),
            Self::Resp(command) => resp::answer::refuse(command, context),
            Self::Message(message) => message.refuse(context),
        }
    }

    /// Carries out a request that is not data. True: the connection is to be closed.
    pub(crate) fn control(&self, context: &mut CommandContext<'_>) -> bool {
        match self {
            Self::Text(command) => text::answer::control(command, context),
            Self::Meta(command) => meta::answer::control(command, context),
            Self::Binary(frame) => binary::answer::control(frame, context),
            Self::Resp(command) => resp::answer::control(command, context),
            Self::Message(message) => {
                message.answer(context);
                false
            }
        }
    }

    /// Rejects an unauthenticated client. True: the connection is to be closed.
    pub(crate) fn reject_unauthenticated(&self, context: &mut CommandContext<'_>) -> bool {
        match self {
            Self::Text(command) => text::answer::reject_unauthenticated(command, context),
            Self::Meta(_) => context.out.extend_from_slice(text::answer::UNAUTHENTICATED),
            Self::Binary(frame) => return binary::answer::reject_unauthenticated(frame, context),
            Self::Resp(_) => resp::answer::reject_unauthenticated(context),
            // There is no login there.
            Self::Message(_) => return true,
        }
        false
    }
}
