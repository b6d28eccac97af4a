//! Natively functions and futures move between threads; in a browser they hold values of
//! JavaScript, which stay on their thread.

/// Declares a type of function or future that is `Send`, or `Send + Sync`, except in a browser.
macro_rules! wasm_not {
    ($($auto:ident),+; $(#[$about:meta])* $seen:vis type $name:ident $(<$($parameter:tt),+>)? = dyn $($bounds:tt)*) => {
        #[cfg(not(target_arch = "wasm32"))]
        $(#[$about])*
        $seen type $name $(<$($parameter),+>)? = dyn $($bounds)* $(+ $auto)+;
        #[cfg(target_arch = "wasm32")]
        $(#[$about])*
        $seen type $name $(<$($parameter),+>)? = dyn $($bounds)*;
    };
}

/// Marks types that are `Send` and `Sync`. In a browser, marks every type.
#[cfg(not(target_arch = "wasm32"))]
pub trait WasmNotSendSync: Send + Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + Sync + ?Sized> WasmNotSendSync for T {}

/// Marks types that are `Send` and `Sync`. In a browser, marks every type.
#[cfg(target_arch = "wasm32")]
pub trait WasmNotSendSync {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> WasmNotSendSync for T {}
