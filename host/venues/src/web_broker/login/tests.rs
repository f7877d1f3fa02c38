//! Secrets of a session.

use super::*;

#[test]
fn secrets_are_the_addresses_and_the_long_parts_of_their_paths() {
    let address =
        SecretString::from("https://host/e_api_v4r8/request/0123456789abcdef/".to_owned());
    let session = Session {
        request: address.clone(),
        master: address.clone(),
        price: address.clone(),
        event: address.clone(),
        event_socket: address,
    };
    let url = "https://host/e_api_v4r8/request/0123456789abcdef/";
    let fields = vec![Field::new("sResultCode", "10031"), Field::new("sUrlRequest", url)];
    let secrets = secrets_of(&BrokerAnswer { fields, ..BrokerAnswer::default() });
    let texts: Vec<&str> = secrets.iter().map(|secret| secret.expose_secret()).collect();
    assert_eq!(texts, [url, "0123456789abcdef"]);
    assert!(!format!("{session:?}").contains("host"));
    assert!(session.changed_since(&session).is_empty());
}

/// Freed memory cannot be read, so the functions that wipe are tested.
#[test]
fn secrets_of_a_request_and_an_answer_are_wiped() {
    let auth_id = SecretString::from("canary-auth-id".to_owned());
    let (user, password) = (auth_id.clone(), auth_id);
    let mut request = login_request(&Credentials::Password { user, password });
    assert!(request.fields.iter().all(|field| field.value == "canary-auth-id"));
    wipe(&mut request.fields);
    assert!(request.fields.iter().all(|field| field.value.is_empty()), "{:?}", request.fields);
}
