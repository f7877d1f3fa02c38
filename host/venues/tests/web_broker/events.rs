//! The stream of events over real WebSockets.
