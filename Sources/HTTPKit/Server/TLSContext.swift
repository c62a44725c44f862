internal import CLibevent

/// The server's certificate and rules for TLS: at least version 1.2, no renegotiation.
@EventLoop
final class TLSContext {
    private nonisolated(unsafe) let context: OpaquePointer
    /// The end of the certificate, in seconds since 1970.
    let end: Int64

    init(files: HTTPServerOptions.TLSFiles) throws(HTTPServerError) {
        guard let context = SSL_CTX_new(TLS_server_method()) else {
            throw HTTPServerError("OpenSSL could not set up TLS.")
        }
        self.context = context
        defer { ERR_clear_error() }
        guard martlet_tls_require_1_2(context) == 1 else {
            throw HTTPServerError("This OpenSSL does not offer TLS 1.2.")
        }
        guard SSL_CTX_use_certificate_chain_file(context, files.certificatePath) == 1 else {
            throw HTTPServerError(
                "The TLS certificate cannot be read; give a PEM file with the whole chain.")
        }
        guard SSL_CTX_use_PrivateKey_file(context, files.keyPath, SSL_FILETYPE_PEM) == 1,
            SSL_CTX_check_private_key(context) == 1
        else {
            throw HTTPServerError(
                "The TLS key cannot be read or does not fit the certificate; give its PEM file.")
        }
        end = martlet_tls_end(context)
    }

    deinit {
        SSL_CTX_free(context)
    }

    func makeSession() -> OpaquePointer? {
        SSL_new(context)
    }
}
