//! Turns of a browser's event loop. A worker hears of a cancel only between two turns.

/// Ends the turn, and goes on in a later one.
#[cfg(target_arch = "wasm32")]
pub(super) async fn end() {
    let channel = MessageChannel::new();
    let (here, there) = (channel.port1(), channel.port2());
    // A timer would wait for 4 ms.
    let message = js_sys::Promise::new(&mut |resolve, _| {
        here.set_onmessage(&resolve);
        there.post_message(&wasm_bindgen::JsValue::NULL);
    });
    // Nobody rejects that promise.
    let _ = wasm_bindgen_futures::JsFuture::from(message).await;
    // Node ends only when no port is open.
    here.close();
}

/// Natively another thread sets the flag.
#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::unused_async, reason = "a browser has to wait here")]
pub(super) async fn end() {}

#[cfg(target_arch = "wasm32")]
use self::bindings::MessageChannel;

#[cfg(target_arch = "wasm32")]
mod bindings {
    use js_sys::Function;
    use wasm_bindgen::prelude::*;

    #[wasm_bindgen]
    extern "C" {
        pub(super) type MessageChannel;
        pub(super) type MessagePort;

        #[wasm_bindgen(constructor)]
        pub(super) fn new() -> MessageChannel;
        #[wasm_bindgen(method, getter)]
        pub(super) fn port1(this: &MessageChannel) -> MessagePort;
        #[wasm_bindgen(method, getter)]
        pub(super) fn port2(this: &MessageChannel) -> MessagePort;
        #[wasm_bindgen(method, setter)]
        pub(super) fn set_onmessage(this: &MessagePort, listener: &Function);
        #[wasm_bindgen(method, js_name = postMessage)]
        pub(super) fn post_message(this: &MessagePort, message: &JsValue);
        #[wasm_bindgen(method)]
        pub(super) fn close(this: &MessagePort);
    }
}
