//! Login data: user, password, database and connection name, for protocols that have them.
//!
//! The caller reads password files. Invariant: a password is never printed, neither in a plan nor in a message.

use crate::units::text_form;
use std::fmt;

/// What a connection tells the server before its first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The user of an access list; none is the server's default user.
    pub user: Option<String>,
    /// The password; none where there is a user is a mistake that resolving finds.
    pub password: Option<Password>,
    /// The number of the database; connections begin in 0.
    pub database: u32,
    /// What the connections are called in the server's list of clients.
    pub client_name: Option<String>,
}

/// A password. Text form `TEXT`, or `@FILE` for the first line of a file; what is printed is `@FILE`, or a word in its place
/// that is read again as [`Password::is_hidden`].
#[derive(Clone)]
pub struct Password {
    secret: String,
    pub(crate) file: Option<String>,
}

/// What is printed in the place of a password that is in no file.
const HIDDEN: &str = "(secret)";

impl Password {
    /// The first line of this file, as it was read.
    ///
    /// # Errors
    /// The line is empty; for a user.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        match text.lines().next() {
            None | Some("") => Err(format!("the file '{file}' begins with no password")),
            Some(line) => Ok(Self { secret: line.to_owned(), file: Some(file.to_owned()) }),
        }
    }

    /// A password given as itself: an `@` in front names no file. Only the word that is printed in its place makes a hidden one.
    pub fn verbatim(secret: String) -> Self {
        let secret = if secret == HIDDEN { String::new() } else { secret };
        Self { secret, file: None }
    }

    /// The password itself; empty as long as its file has not been read.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// It was printed, which hides it, and read again.
    pub fn is_hidden(&self) -> bool {
        self.secret.is_empty() && self.file.is_none()
    }

    /// The file that is still to be read.
    pub fn unread(&self) -> Option<&str> {
        self.file.as_deref().filter(|_| self.secret.is_empty())
    }

    fn of_text(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => {
                Err("expected a password, or @ and the path of a file whose first line it is".to_owned())
            }
            Some(file) => Ok(Self { secret: String::new(), file: Some(file.to_owned()) }),
            None if text == HIDDEN => Ok(Self { secret: String::new(), file: None }),
            None if text.is_empty() => Err("expected a password that is not empty, or @FILE".to_owned()),
            None => Ok(Self { secret: text.to_owned(), file: None }),
        }
    }

    fn write_text(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(formatter, "@{file}"),
            None => formatter.write_str(HIDDEN),
        }
    }
}

/// Equal passwords have equal secrets, in whichever file; unread ones are equal where they are of one file.
impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        self.secret == other.secret && (!self.secret.is_empty() || self.file == other.file)
    }
}

impl Eq for Password {}

text_form!(Password);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_read_and_never_printed() {
        let given: Password = "hunter2".parse().unwrap();
        assert_eq!((given.secret(), given.unread()), ("hunter2", None));
        assert_eq!(format!("{given} {given:?}"), "(secret) (secret)");
        let named: Password = "@/run/pw".parse().unwrap();
        assert_eq!((named.secret(), named.unread()), ("", Some("/run/pw")));
        let read = Password::read("/run/pw", "hunter2\r\nmore\n").unwrap();
        assert_eq!((read.secret(), read.unread()), ("hunter2", None));
        assert_eq!(format!("{read} {read:?}"), "@/run/pw @/run/pw");
        let printed: Password = given.to_string().parse().unwrap();
        assert!(printed.is_hidden() && !given.is_hidden() && !named.is_hidden() && !read.is_hidden());
        assert!(read == given && read != named && named != printed);
        assert_ne!(named, "@/run/other".parse().unwrap());
        for text in ["", "@"] {
            assert!(text.parse::<Password>().is_err(), "{text}");
        }
        assert!(Password::read("f", "\nhunter2").is_err() && Password::read("f", "").is_err());
    }
}
