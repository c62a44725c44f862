# How the checks build in debug, for `source scripts/lib/whole-modules.sh`: modules compiled whole, with
# lines for stacks alone, a quarter less work than a plain `swift build`. The build has a folder of its
# own, so that neither this build nor a plain one makes the other recompile everything.
whole=(-Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 2 -Xswiftc -gline-tables-only
    -Xswiftc -no-emit-module-separately-wmo)
checks=(--scratch-path .build/checks "${whole[@]}")
# These targets read and write messages and rows byte by byte, so the checks optimize them: tests of large
# values spend most of their time there.
export MARTLET_OPTIMIZED_TARGETS=MartletProtocol,MartletModel,SQLiteKit,SQLiteRecords
