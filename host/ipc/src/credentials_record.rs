//! The credentials of a venue as a record of a log.

use domain::Secret;
use domain::secret::REDACTED;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// The credentials of a venue as a record. The second password is none of them: it is asked for and held in
/// memory only (specification 2, "Authentication").
#[derive(Debug, Clone)]
pub struct CredentialsRecord {
    /// The venue, like `web_broker`.
    pub venue: String,
    /// The user's name; none where it is not known.
    pub user_id: Option<Secret>,
    /// The password of the login; none where it is not known.
    pub password: Option<Secret>,
}

/// Writes which of them are known, and no secret.
impl Serialize for CredentialsRecord {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let known = |secret: &Option<Secret>| secret.as_ref().map(|_| REDACTED);
        let mut record = to.serialize_struct("CredentialsRecord", 3)?;
        record.serialize_field("venue", &self.venue)?;
        record.serialize_field("user_id", &known(&self.user_id))?;
        record.serialize_field("password", &known(&self.password))?;
        record.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Specification 2, "Versioning", 2: the field of the second password left with minor version 4.
    #[test]
    fn a_record_of_credentials_has_no_second_password_and_no_secret() {
        let record = CredentialsRecord {
            venue: "web_broker".to_owned(),
            user_id: Some(Secret::from("marker-1".to_owned())),
            password: None,
        };
        let expected = r#"{"venue":"web_broker","user_id":"[REDACTED]","password":null}"#;
        assert_eq!(serde_json::to_string(&record).unwrap(), expected);
        assert!(!format!("{record:?}").contains("marker"));
    }
}
