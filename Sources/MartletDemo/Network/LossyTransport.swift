import Martlet

/// A transport that loses requests, and answers after the server has processed them.
struct LossyTransport: Transport {
    let base: any Transport
    let faults: NetworkFaults

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        let fate = faults.next()
        guard fate != .requestLost else {
            throw TransportFailure(message: "The demo's network lost the request.")
        }
        do throws(TransportFailure) {
            let answer = try await base.exchange(body)
            guard fate != .answerLost else {
                throw TransportFailure(message: "The demo's network lost the answer.")
            }
            return answer
        } catch {
            if fate == .carried { faults.countFailure() }
            throw error
        }
    }
}
