# Groups of tests, for `source scripts/lib/test-groups.sh`, so that each runs in the stage where it says
# most.

# The test targets in which threads meet: the stage `races` builds and runs them under Thread Sanitizer,
# and `build` and `unit` leave them out.
race_targets=(
    HTTPKitTests MartletServerTests ConcurrencyTests LiveTests MartletStoreTests MartletTests
    MartletCommandTests MartletTransferTests MartletDemoTests
)
# Suites that keep to one thread and compute for long: the stage `faults` runs them, and all others
# leave them out.
long_suites='DeviceSweepTests|CrashTests|FaultTests|ModelTests|SimulatorTests|\.DamageTests'
