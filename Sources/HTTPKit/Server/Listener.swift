internal import CLibevent

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// The listening socket.
@EventLoop
final class Listener {
    private(set) var port = 0
    private unowned let core: ServerCore
    private var listener: OpaquePointer?
    private var pause: OpaquePointer?

    /// The connections that the kernel holds until they are accepted.
    private static let backlog: Int32 = 1_024

    init(host: String, port: Int, core: ServerCore) throws(HTTPServerError) {
        self.core = core
        guard (0...65_535).contains(port) else {
            throw HTTPServerError("\(port) is no port; give a number from 0 to 65535.")
        }
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        #if canImport(Glibc)
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &found)
        defer { if let found { freeaddrinfo(found) } }
        guard code == 0, let found else {
            throw HTTPServerError("“\(host)” is no address this machine knows; give another host.")
        }
        let flags = LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC
        listener = evconnlistener_new_bind(
            EventLoop.base,
            { _, socket, address, length, argument in
                Listener.accepted(socket, address, length, argument)
            }, Unmanaged.passUnretained(self).toOpaque(), flags, Self.backlog,
            found.pointee.ai_addr, Int32(found.pointee.ai_addrlen))
        guard let listener else {
            let reason = String(cString: strerror(errno))
            throw HTTPServerError(
                "Cannot listen on \(host), port \(port): \(reason). Choose another port.")
        }
        configure(listener)
    }

    private func configure(_ listener: OpaquePointer) {
        let socket = evconnlistener_get_fd(listener)
        // Accepted sockets inherit this option. Without it small answers wait for acknowledgements.
        var on: Int32 = 1
        setsockopt(
            socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        self.port = Self.localPort(socket)
        evconnlistener_set_error_cb(listener) { _, argument in
            guard let argument else { return }
            EventLoop.assume {
                Unmanaged<Listener>.fromOpaque(argument).takeUnretainedValue().acceptFailed()
            }
        }
        pause = event_new(
            EventLoop.base, -1, 0,
            { _, _, argument in
                guard let argument else { return }
                EventLoop.assume {
                    Unmanaged<Listener>.fromOpaque(argument).takeUnretainedValue().acceptAgain()
                }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    func close() {
        if let pause { event_free(pause) }
        pause = nil
        if let listener { evconnlistener_free(listener) }
        listener = nil
    }

    private nonisolated static func accepted(
        _ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>?, _ length: Int32,
        _ argument: UnsafeMutableRawPointer?
    ) {
        // libevent passes the argument to this thread, on which it was set.
        nonisolated(unsafe) let argument = argument
        let name = numericName(address, socklen_t(length))
        EventLoop.assume {
            guard let argument else { return }
            let listener = Unmanaged<Listener>.fromOpaque(argument).takeUnretainedValue()
            listener.core.accepted(socket, address: name)
        }
    }

    /// Pauses accepting. Most likely the process has no descriptors left. The socket stays
    /// readable, so without a pause the loop would run at full speed.
    private func acceptFailed() {
        guard let listener, let pause else { return }
        evconnlistener_disable(listener)
        var delay = timeval(tv_sec: 0, tv_usec: 100_000)
        event_add(pause, &delay)
    }

    private func acceptAgain() {
        guard let listener else { return }
        evconnlistener_enable(listener)
    }

    private nonisolated static func numericName(
        _ address: UnsafeMutablePointer<sockaddr>?, _ length: socklen_t
    ) -> String {
        var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let code = getnameinfo(
            address, length, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST)
        guard code == 0 else { return "" }
        let text = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return String(decoding: text, as: UTF8.self)
    }

    private nonisolated static func localPort(_ socket: Int32) -> Int {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getsockname(socket, address, &length) == 0 else { return 0 }
                var service = [CChar](repeating: 0, count: Int(NI_MAXSERV))
                let code = getnameinfo(
                    address, length, nil, 0, &service, socklen_t(service.count),
                    NI_NUMERICSERV)
                let text = service.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
                return code == 0 ? Int(String(decoding: text, as: UTF8.self)) ?? 0 : 0
            }
        }
    }
}
