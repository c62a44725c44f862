import Testing

/// The scenarios, one after the other: memory is measured, and nothing else runs meanwhile.
@Suite("Sync integration", .serialized)
struct SyncIntegration {}
