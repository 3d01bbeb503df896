# Cellar's build. `make run` and `make test` work on a fresh Debian 12 machine; `make help` lists
# the rest. Variants (release, debug, asan, tsan, fuzz) live side by side under build/, so that
# changing from one to another rebuilds nothing. `make help` shows the lines that begin with `#:` (for
# users) and `##` (for developers).

.DEFAULT_GOAL := all
SHELL := /bin/bash
VARIANT ?= release
BUILD := build/$(VARIANT)
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
JOBS := $(shell nproc)
MAKEFLAGS += --no-builtin-rules
# V=1 shows the commands.
Q := $(if $(V),,@)
# Debian's own interpreter: another one in PATH would not see Debian's python3-redis.
PYTHON := /usr/bin/python3

LAYERS := base s3 btree resp engine store embedded heat replica cluster commands server
LIB_LAYERS := base btree engine store embedded

# What a build needs, and what tests and checks need besides; `make deps` installs what is missing.
BUILD_PACKAGES := g++ pkg-config libuv1-dev libmimalloc-dev libxxhash-dev libre2-dev libfmt-dev \
  libssl-dev libabsl-dev libhiredis-dev liblz4-dev libzstd-dev libpng-dev zlib1g-dev libncurses-dev \
  libmicrohttpd-dev nlohmann-json3-dev libcli11-dev libcurl4-openssl-dev tzdata python3 redis-tools
TEST_PACKAGES := catch2 python3-redis clang clang-format clang-tidy libclang-rt-14-dev git \
  openssl dpkg-dev mandoc
# Other people's clients and tools, which the tests skip (and say so) when they are not there.
CLIENT_PACKAGES := ruby-redis php-cli php-redis libredis-perl prometheus-redis-exporter man-db \
  logrotate systemd redis-sentinel faketime iproute2 chromium chromium-driver python3-selenium \
  python3-avro python3-pip mypy python3-typeshed python3-typing-extensions

# ccache makes a second build of the same source free; it is used when it is there.
CCACHE := $(shell command -v ccache 2>/dev/null)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# As its manual asks for precompiled headers; no file uses __DATE__ or __TIME__.
export CCACHE_SLOPPINESS := pch_defines,time_macros

CXX_release := g++
CXX_debug := g++
CXX_asan := clang++
CXX_tsan := clang++
CXX_fuzz := clang++
CXX = $(CCACHE) $(CXX_$(VARIANT))
CC = $(CCACHE) $(patsubst clang++,clang,$(patsubst g++,gcc,$(CXX_$(VARIANT))))

# libraft, for replica sets: the machine's own if it is 0.22 or newer (older ones are unsafe), else
# what `make deps` has put below build/deps. Without either all but sets is built.
RAFT_HOME := build/deps
ifeq ($(shell pkg-config --atleast-version=0.22 raft 2>/dev/null && echo yes),yes)
RAFT_LIBS := $(or $(wildcard $(shell pkg-config --variable=libdir raft)/libraft.a),-lraft)
RAFT_FLAGS := -DCELLAR_RAFT=1
else ifneq ($(wildcard $(RAFT_HOME)/usr/include/raft.h),)
RAFT_LIBS := $(wildcard $(RAFT_HOME)/usr/lib/*/libraft.a)
RAFT_FLAGS := -DCELLAR_RAFT=1 -isystem $(RAFT_HOME)/usr/include
else
RAFT_LIBS :=
RAFT_FLAGS := -DCELLAR_RAFT=0
endif

ARCH := $(shell uname -m)
ARCH_FLAGS := $(if $(filter x86_64,$(ARCH)),-march=x86-64-v2,)
# -Wno-restrict: g++ 12 sees overlaps in std::string's operator+ that are not there (its bug 105651).
# -g1: file and line for profiles and backtraces, in two thirds of the compile time of -g.
# -Wno-array-bounds and -stringop: the same of copies, the more of them the more it inlines; asan looks for what is there.
FLAGS_release := -O2 -g1 -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
# -Wno-stringop-overflow: without inlining and optimisation g++ 12 does not see that a copy is bounded.
FLAGS_debug := -O0 -g -DCELLAR_DEBUG -Wno-restrict -Wno-stringop-overflow
FLAGS_asan := -O1 -g -DCELLAR_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all \
  -fno-omit-frame-pointer
FLAGS_tsan := -O1 -g -DCELLAR_DEBUG -fsanitize=thread -fno-omit-frame-pointer
FLAGS_fuzz := -O1 -g -DCELLAR_DEBUG -fsanitize=fuzzer-no-link,address -fno-omit-frame-pointer
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
# Options are made of their syntax lines at compile time (commands/arguments), beyond what clang allows by itself.
FLAGS_clang := -fconstexpr-steps=50000000
CXXFLAGS = -std=c++20 $(if $(filter clang++,$(CXX_$(VARIANT))),$(FLAGS_clang)) $(ARCH_FLAGS) $(WARNINGS) $(FLAGS_$(VARIANT)) -Isrc -Iinclude -Itools -MMD -MP
CFLAGS = -std=c11 -D_GNU_SOURCE $(ARCH_FLAGS) $(WARNINGS) $(FLAGS_$(VARIANT)) -Isrc -MMD -MP
LDFLAGS = $(filter -fsanitize%,$(FLAGS_$(VARIANT)))
# mimalloc hides heap errors from the sanitizers, so only the plain builds have it.
MALLOC_LIBS = $(if $(filter release debug,$(VARIANT)),-lmimalloc,)
CXXFLAGS += $(if $(filter release debug,$(VARIANT)),-DCELLAR_MIMALLOC,)
ABSL_LIBS := -labsl_time -labsl_time_zone -labsl_civil_time
LIBS = -lre2 -lfmt -lssl -lcrypto -lxxhash -llz4 -lzstd -lpthread $(ABSL_LIBS)
# Of what speaks to object stores (src/s3): the server, and cellar-cluster.
APP_LIBS = -lcurl
# libraft.a names functions of libuv.
UV_LIBS = $(RAFT_LIBS) -luv

SOURCES := $(foreach l,$(LAYERS),$(wildcard src/$(l)/*.cc src/$(l)/*/*.cc))
C_SOURCES := $(foreach l,$(LAYERS),$(wildcard src/$(l)/*.c src/$(l)/*/*.c))
LIB_SOURCES := $(foreach l,$(LIB_LAYERS),$(wildcard src/$(l)/*.cc src/$(l)/*/*.cc))
APP_SOURCES := $(filter-out $(LIB_SOURCES),$(SOURCES))

# What a file includes takes the compiler far longer than the file itself. So g++ gets the files of a
# folder three at a time (build/release/src/s3/aws_signature+curl_call+multipart.o), behind what most files of a
# layer include, compiled once (src/LAYER/precompiled.h). A change of one file costs no more than when
# each stood alone, a whole build much less. clang (asan, tsan, fuzz, tidy) gets them one by one, and
# so does `make alone`. ALONE: those that share a name of their own with a neighbour, take long, or are
# run so often that all in them has to be inlined, which g++ stops at where a unit grows much.
ALONE := src/store/offline/manifest_rebuild.cc tools/cellar-top/sample.cc tools/cellar-web/web_server.cc \
  $(addprefix src/commands/data/,cell_read_commands.cc cell_write_commands.cc) $(wildcard tools/*/options.cc) \
  $(addprefix tools/cellar-import/,avro_schema.cc report.cc rows_mapper.cc)
GROUPED := $(filter g++,$(CXX_$(VARIANT)))
empty :=
trios = $(if $(1),$(subst $(empty) $(empty),+,$(wordlist 1,3,$(1))) $(call trios,$(wordlist 4,$(words $(1)),$(1))))
# Of folder 1, those of the files 2 that are in it.
folder_units = $(addprefix $(1),$(call trios,$(notdir $(basename $(filter-out $(ALONE),$(2)))))) $(basename $(filter $(ALONE),$(2)))
units = $(if $(GROUPED),$(foreach d,$(sort $(dir $(1))),$(call folder_units,$(d),$(foreach f,$(1),$(if $(filter \
  $(d),$(dir $(f))),$(f))))),$(basename $(1)))
LIB_UNITS := $(call units,$(sort $(LIB_SOURCES)))
APP_UNITS := $(call units,$(sort $(APP_SOURCES)))
# The files of a unit: the last is compiled, the others are read before it.
members = $(addprefix $(dir $(1)),$(addsuffix .cc,$(subst +, ,$(notdir $(1)))))
inclusions = $(addprefix -include ,$(filter-out $(lastword $(members)),$(members)))
# How far the build is, where OF says of how many.
step = $(if $(OF), $(eval STEPS += x)$(words $(STEPS)) of $(OF))
count = $$($(MAKE) -n $(1) | grep -c '^echo "compile')
LIB_OBJECTS = $(LIB_UNITS:%=$(BUILD)/%.o)
APP_OBJECTS = $(APP_UNITS:%=$(BUILD)/%.o) $(C_SOURCES:%.c=$(BUILD)/%.o)
# Each folder of tools/ with a main.cc is a program named after it. What its main.cc leaves to other
# files is tested by tests/tools/.
TOOLS := $(patsubst tools/%/main.cc,%,$(wildcard tools/*/main.cc))
# Not what only developers of Cellar use.
INSTALLED_TOOLS := $(filter-out bench-btree,$(TOOLS))
TOOL_SOURCES := $(filter-out %/main.cc,$(wildcard tools/*/*.cc))
TOOL_UNITS := $(call units,$(sort $(TOOL_SOURCES)))
TOOL_OBJECTS = $(TOOL_UNITS:%=$(BUILD)/%.o)

# Tests: the files of one layer are included into one translation unit (Catch2's header is read once
# a layer), and Catch2's main is compiled once.
TEST_LAYERS := $(foreach l,$(LAYERS) tools,$(if $(wildcard tests/$(l)/*_test.cc),$(l),))
SIMULATION_OBJECT = $(BUILD)/tests/replica/simulation.o $(BUILD)/tests/replica/simulation_host.o
TEST_OBJECTS = $(TEST_LAYERS:%=$(BUILD)/tests/%_tests.o) $(BUILD)/tests/catch_main.o
# Catch2's assertions take the compiler much time and gain nothing from its effort.
$(BUILD)/tests/%.o: CXXFLAGS += -I. $(if $(filter release,$(VARIANT)),-O1 -g0,)
FUZZERS := $(patsubst tests/fuzz/%.cc,%,$(wildcard tests/fuzz/*_fuzz.cc))
FUZZ_OBJECTS := $(FUZZERS:%=$(BUILD)/tests/fuzz/%.o)

.PHONY: all run test test-threads test-debug test-follower test-cluster unit-test deps build-deps debug asan tsan fuzz soak simulate format format-check tidy alone \
  check crash crash-feeds faults-set bench bench-replica bench-set bench-cluster bench-cuts bench-moves bench-tablets bench-answers bench-feeds bench-groups bench-compression bench-index bench-loop bench-threads bench-tls \
  bench-btree bench-durability bench-instructions compare pictures \
  manual install deb clean help demo demo-set demo-cluster library FORCE

#: all            build build/cellar and the tools beside it (the default)
all: build/cellar $(TOOLS:%=build/%)

# The links in build/ show the variant that was built last.
build/cellar: $(BUILD)/cellar FORCE
	@[ "$$(readlink $@)" = $(VARIANT)/cellar ] || ln -sf $(VARIANT)/cellar $@
$(TOOLS:%=build/%): build/%: $(BUILD)/% FORCE
	@[ "$$(readlink $@)" = $(VARIANT)/$* ] || ln -sf $(VARIANT)/$* $@

$(BUILD)/libcellar.a: $(LIB_OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

# The library (libcellar(3)): its objects are compiled a second time, since a shared library's code
# must run wherever it is loaded, which the server need not pay for. No mimalloc: that is the choice
# of the program it is loaded into.
VERSION := $(shell sed -n 's/.*kVersion{"\([^"]*\)"}.*/\1/p' include/cellar/version.h)
SONAME := libcellar.so.$(firstword $(subst ., ,$(VERSION)))
LIBRARY_OBJECTS = $(LIB_UNITS:%=$(BUILD)/pic/%.o)
define PIC_RULE
$(BUILD)/pic/$(1).o: $(members)
	@mkdir -p $$(@D)
	@echo "compile$$(step) for the library: $(members)"
	$$(Q)$$(CXX) $$(filter-out -DCELLAR_MIMALLOC,$$(CXXFLAGS)) -fPIC $(inclusions) -c -o $$@ $(lastword $(members))
endef
$(foreach u,$(LIB_UNITS),$(eval $(call PIC_RULE,$(u))))
$(BUILD)/$(SONAME): $(LIBRARY_OBJECTS) src/embedded/libcellar.map
	@echo "link $@"
	$(Q)$(CXX) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--no-undefined -o $@ $(LIBRARY_OBJECTS) \
	  -Wl,--version-script,src/embedded/libcellar.map -lre2 -lfmt -lxxhash -llz4 -lzstd -lpthread \
	  $(ABSL_LIBS) -labsl_throw_delegate
## library        build libcellar.so, the store without the server
library: $(BUILD)/$(SONAME)

$(BUILD)/cellar: $(BUILD)/src/main.o $(APP_OBJECTS) $(BUILD)/libcellar.a
	@echo "link $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ $(UV_LIBS) $(APP_LIBS) $(LIBS) $(MALLOC_LIBS)

$(BUILD)/%.o: %.cc
	@mkdir -p $(@D)
	@echo "compile$(step) $<"
	$(Q)$(CXX) $(CXXFLAGS) -c -o $@ $<

# Precompiled: of each layer what most of its files include. The header in build/ is the way to what
# g++ has made of it; if that cannot be used, it is read as it is.
PRECOMPILED := $(patsubst src/%/precompiled.h,%,$(wildcard src/*/precompiled.h))
layer = $(word 2,$(subst /, ,$(1)))
precompiled = $(BUILD)/src/$(or $(filter $(layer),$(PRECOMPILED)),$(LAYER_LIKE_$(layer)),base)/precompiled.h
LAYER_LIKE_embedded := store
LAYER_LIKE_cluster := replica
$(PRECOMPILED:%=$(BUILD)/src/%/precompiled.h.gch): $(BUILD)/src/%/precompiled.h.gch: src/%/precompiled.h
	@mkdir -p $(@D)
	@echo "compile$(step) $<"
	@echo '#include "$*/precompiled.h"' >$(@:.gch=)
	$(Q)$(CXX) $(CXXFLAGS) -x c++-header -c -o $@ $(@:.gch=)

define UNIT_RULE
$(BUILD)/$(1).o: $(members) $(precompiled).gch
	@mkdir -p $$(@D)
	@echo "compile$$(step) $(members)"
	$$(Q)$$(CXX) $$(CXXFLAGS) -fpch-preprocess -include $(precompiled) $(inclusions) -c -o $$@ $(lastword $(members))
endef
ifneq ($(GROUPED),)
$(foreach u,src/main $(LIB_UNITS) $(APP_UNITS) $(TOOL_UNITS) $(TOOLS:%=tools/%/main),$(eval $(call UNIT_RULE,$(u))))
endif

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "compile$(step) $<"
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<

# Compiled anew when the library has come or gone.
$(BUILD)/src/replica/set/raft_core.o: CFLAGS += $(RAFT_FLAGS)
$(BUILD)/src/replica/set/raft_core.o: $(BUILD)/raft.flags
$(BUILD)/raft.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(RAFT_FLAGS) $(RAFT_LIBS)' | cmp -s - $@ || echo '$(RAFT_FLAGS) $(RAFT_LIBS)' > $@

define TOOL_RULE
$(BUILD)/$(1): $(patsubst %,$(BUILD)/%.o,tools/$(1)/main $(filter tools/$(1)/% tools/client/%,$(TOOL_UNITS)) $(UNITS_$(1))) $(BUILD)/libcellar.a
	@echo "link $$@"
	$$(Q)$$(CXX) $$(LDFLAGS) -o $$@ $$^ -lhiredis $(UV_LIBS) $(LIBS) $(LIBS_$(1)) $$(MALLOC_LIBS)
endef
# It reads what a backup is made of, also in an object store.
UNITS_cellar-cluster := $(filter src/s3/%,$(APP_UNITS))
LIBS_cellar-cluster := $(APP_LIBS)
LIBS_bench-btree := -labsl_throw_delegate -labsl_raw_logging_internal
LIBS_cellar-export := -lz
LIBS_cellar-heatmap := -lpng
LIBS_cellar-import := -lz
LIBS_cellar-top := -lncurses -ltinfo
LIBS_cellar-web := -lmicrohttpd
$(foreach t,$(TOOLS),$(eval $(call TOOL_RULE,$(t))))

# What cellar-web serves stands in its binary.
WEB_PAGE := $(wildcard tools/cellar-web/page/*)
$(patsubst %,$(BUILD)/%.o,$(foreach u,$(TOOL_UNITS),$(if $(filter tools/cellar-web/page.cc,$(call members,$(u))),$(u)))): $(WEB_PAGE)

# -Wno-sign-conversion: clang means it by -Wconversion, g++ does not.
define TEST_RULE
$(BUILD)/tests/$(1)_tests.cc: $(wildcard tests/$(1)/*_test.cc) FORCE
	@mkdir -p $$(@D)
	@printf '#include "%s"\n' $$(filter %_test.cc,$$^) | cmp -s - $$@ || printf '#include "%s"\n' $$(filter %_test.cc,$$^) > $$@
$(BUILD)/tests/$(1)_tests.o: $(BUILD)/tests/$(1)_tests.cc
	@echo "compile$$(step) $$<"
	$$(Q)$$(CXX) $$(CXXFLAGS) -Wno-sign-conversion -c -o $$@ $$<
endef
$(foreach l,$(LAYERS) tools,$(eval $(call TEST_RULE,$(l))))

$(BUILD)/tests/catch_main.o: tests/catch_main.cc
	@mkdir -p $(@D)
	@echo "compile$(step) $<"
	$(Q)$(CXX) $(CXXFLAGS) -c -o $@ $<

$(BUILD)/simulate: $(BUILD)/tests/replica/simulate_main.o $(SIMULATION_OBJECT) $(APP_OBJECTS) $(BUILD)/libcellar.a
	@echo "link $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ $(UV_LIBS) $(APP_LIBS) $(LIBS) $(MALLOC_LIBS)

$(BUILD)/unit-tests: $(TEST_OBJECTS) $(SIMULATION_OBJECT) $(TOOL_OBJECTS) $(APP_OBJECTS) $(BUILD)/libcellar.a
	@echo "link $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ -lhiredis -lpng -lz -lncurses -ltinfo -lmicrohttpd $(UV_LIBS) $(APP_LIBS) $(LIBS) $(MALLOC_LIBS)

#: run            install what is missing, build the server, serve 127.0.0.1:6479 with the data in ./data
run: build-deps
	@$(MAKE) -j$(JOBS) build/cellar OF=$(call count,build/cellar)
	@mkdir -p data
	build/cellar --bind 127.0.0.1 --port 6479 --dir data --create-dir yes

## test           install what is missing, build, run every test; ends in "N passed, N failed"
test: deps
	$(MAKE) -j$(JOBS) all library $(BUILD)/unit-tests
	@$(PYTHON) tests/run.py --build $(BUILD)

## unit-test      only the C++ tests (no sockets)
unit-test: $(BUILD)/unit-tests
	$(BUILD)/unit-tests
# That they have passed as they are: tests/run.py notes it too, so that `check` behind `test` is quick.
$(BUILD)/unit-tests.passed: $(BUILD)/unit-tests $(shell find tests/fixtures -type f 2>/dev/null)
	$(BUILD)/unit-tests
	@touch $@

## deps           install the Debian packages that are missing (apt, with sudo unless root)
deps:
	@tools/deps.sh $(BUILD_PACKAGES) $(TEST_PACKAGES) -- $(CLIENT_PACKAGES)
	@tools/libraft.sh $(RAFT_HOME)
build-deps:
	@tools/deps.sh $(BUILD_PACKAGES)
	@tools/libraft.sh $(RAFT_HOME)

## debug          build without optimisation, with the costly assertions
debug:
	$(MAKE) -j$(JOBS) VARIANT=debug all

## test-threads   tests/e2e with io-threads THREADS (3): other threads read and write
THREADS ?= 3
test-threads:
	$(MAKE) -j$(JOBS) all library
	@CELLAR_IO_THREADS=$(THREADS) $(PYTHON) tests/run.py --build $(BUILD) --skip-unit

## test-debug     tests/e2e against the build with the costly assertions
test-debug:
	$(MAKE) -j$(JOBS) VARIANT=debug build/debug/cellar $(TOOLS:%=build/debug/%)
	@$(PYTHON) tests/run.py --build build/debug --skip-unit

## test-follower  tests/e2e with the clients of shared servers on a follower of a set: FOLLOWER=leader|local reads
FOLLOWER ?= local
test-follower:
	$(MAKE) -j$(JOBS) all library
	@CELLAR_FOLLOWER=$(FOLLOWER) $(PYTHON) tests/run.py --build $(BUILD) --skip-unit

## test-cluster   tests/e2e with shared servers that are clusters of three sets; CELLAR_CHAOS=1: tablets split and merge
test-cluster:
	$(MAKE) -j$(JOBS) all library
	@CELLAR_CLUSTER=3 $(PYTHON) tests/run.py --build $(BUILD) --skip-unit

## asan, tsan     build with AddressSanitizer+UBSan, or ThreadSanitizer, and run every test
asan tsan:
	$(MAKE) -j$(JOBS) VARIANT=$@ build/$@/cellar $(TOOLS:%=build/$@/%) build/$@/unit-tests
	@$(PYTHON) tests/run.py --build build/$@

## fuzz           run each fuzzer of tests/fuzz for FUZZ_SECONDS (20)
FUZZ_SECONDS ?= 20
fuzz:
	$(MAKE) -j$(JOBS) VARIANT=fuzz $(FUZZERS:%=build/fuzz/%)
	@set -e; for f in $(FUZZERS); do \
	  corpus=build/fuzz/corpus/$$f; mkdir -p $$corpus build/fuzz/found; \
	  echo "fuzz: $$f for $(FUZZ_SECONDS) s"; \
	  build/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 -verbosity=0 \
	    -print_final_stats=1 -artifact_prefix=build/fuzz/found/$$f- \
	    $$corpus $$(ls -d tests/fuzz/corpus/$$f 2>/dev/null); \
	done
ifeq ($(VARIANT),fuzz)
build/fuzz/%_fuzz: build/fuzz/tests/fuzz/%_fuzz.o $(TOOL_OBJECTS) $(APP_OBJECTS) $(BUILD)/libcellar.a
	@echo "link $@"
	$(Q)$(CXX) -fsanitize=fuzzer,address -o $@ $^ -lhiredis -lpng -lz -lncurses -ltinfo -lmicrohttpd $(UV_LIBS) $(APP_LIBS) $(LIBS)
endif

## soak           the long tests: hidden unit tests "[soak]" and tests/soak/, for SOAK_SECONDS (600)
SOAK_SECONDS ?= 600
export SOAK_SECONDS
soak:
	$(MAKE) -j$(JOBS) all $(BUILD)/unit-tests
	$(BUILD)/unit-tests "[soak]"
	CELLAR_CRASH_ROUNDS=50 $(PYTHON) tests/e2e/test_import_crash.py
	CELLAR_BACKUPS=100 $(PYTHON) tests/e2e/test_backup.py BackupTest.test_backups_under_load
	@set -e; for f in $(wildcard tests/soak/*.py); do echo "soak: $$f"; $(PYTHON) $$f; done

## compare        OLD=another build: the model's commands to both, and every reply the same bytes
COMPARE_COMMANDS ?= 200000
compare: build/cellar
	$(PYTHON) tests/model/compare.py $(OLD) build/cellar --commands $(COMPARE_COMMANDS)

## simulate       replica sets in a simulation, SCHEDULES (1000) of each kind; `make test` does some
SCHEDULES ?= 1000
FIRST_SEED ?= 1000
simulate: $(BUILD)/simulate
	$(BUILD)/simulate --seed $(FIRST_SEED) --schedules $(SCHEDULES)
	$(BUILD)/simulate --seed $(FIRST_SEED) --schedules $(SCHEDULES) --nodes 5
	$(BUILD)/simulate --seed $(FIRST_SEED) --schedules $(SCHEDULES) --slow-links
	$(BUILD)/simulate --seed $(FIRST_SEED) --schedules $(SCHEDULES) --members
	$(BUILD)/simulate --seed $(FIRST_SEED) --schedules $(SCHEDULES) --witnesses 1
	$(BUILD)/simulate --seed $(FIRST_SEED) --schedules $(SCHEDULES) --members --witnesses 1

## crash          kill -9 under load, RUNS (1000) times for each policy; `make test` does 25
RUNS ?= 1000
crash: build/cellar
	CELLAR_CRASH_RUNS=$(RUNS) $(PYTHON) tests/e2e/test_crash.py

## crash-feeds    the same for what feeds tell, and for groups of consumers
crash-feeds: build/cellar
	CELLAR_FEED_CRASHES=$(RUNS) $(PYTHON) tests/e2e/test_feeds.py AfterCrashes
	CELLAR_GROUP_CRASHES=$(RUNS) $(PYTHON) tests/e2e/test_feed_groups.py Crash

## faults-set     a replica set: each fault ROUNDS (20) times, then FAULT_MINUTES (30) of all kinds
faults-set: ROUNDS ?= 20
FAULT_MINUTES ?= 30
faults-set: build/cellar
	CELLAR_SET_ROUNDS=$(ROUNDS) CELLAR_SET_CUT=8 CELLAR_SET_MINUTES=$(FAULT_MINUTES) \
	  $(PYTHON) tests/e2e/test_replica_set_faults.py

## bench          Cellar beside redis-server: six minutes, REPEATS=3 SECONDS_EACH=1 (VALKEY=CHECKOUT: beside Valkey)
REPEATS ?= 3
SECONDS_EACH ?= 1
BENCH_OPTIONS ?=
bench: build/cellar build/cellar-benchmark
	@$(PYTHON) tools/bench/bench.py --repeats $(REPEATS) --seconds $(SECONDS_EACH) $(BENCH_OPTIONS)

## bench-durability   log, snapshot, restart beside redis-server: CELLS=10000000 takes ten minutes
CELLS ?= 10000000
bench-durability: build/cellar build/cellar-benchmark
	@$(PYTHON) tools/bench/durability.py --cells $(CELLS) $(BENCH_OPTIONS)

## bench-answers  sums, groups, distinct and updates beside what a client does without: some minutes
bench-answers: build/cellar
	@$(PYTHON) tools/bench/answers.py $(BENCH_OPTIONS)

## bench-compression  what COMPRESS saves and costs, on pages of HTML
bench-compression: build/cellar
	@$(PYTHON) tools/bench/compression.py $(BENCH_OPTIONS)

## bench-groups   what a locality group saves: small cells scanned beside large ones
bench-groups: build/cellar
	@$(PYTHON) tools/bench/groups.py $(BENCH_OPTIONS)

## bench-index    what indexes cost when written and give when read: a million rows, a few minutes
bench-index: build/cellar build/cellar-benchmark
	@$(PYTHON) tools/bench/indexes.py $(BENCH_OPTIONS)

## bench-loop     PING beside commands that read, fill or empty a table of ten million cells; writers beside a scan
bench-loop: build/cellar
	@$(PYTHON) tools/bench/loop.py $(BENCH_OPTIONS)

## bench-replica  followers: lag, a copy of CELLS cells, FAILOVER, redis-sentinel: ten minutes
bench-replica: build/cellar build/cellar-benchmark
	@$(PYTHON) tools/bench/replica.py --cells $(CELLS) $(BENCH_OPTIONS)

## bench-set      a replica set: writes, reads, clients behind kill -9, members that change, a full disk
bench-set: build/cellar build/cellar-benchmark
	@$(PYTHON) tools/bench/sets.py --cells $(CELLS) $(BENCH_OPTIONS)

## bench-cluster  what passing commands on to the leader costs both nodes, beside asking it
bench-cluster: build/cellar
	@$(PYTHON) tools/bench/cluster.py $(BENCH_OPTIONS)

## bench-cuts     what a cut a second over three sets costs those who write
bench-cuts: build/cellar
	@$(PYTHON) tools/bench/cuts.py $(BENCH_OPTIONS)

## bench-tablets  what a table over three sets costs beside one set: points, scans, two owners
bench-tablets: build/cellar
	@$(PYTHON) tools/bench/tablets.py $(BENCH_OPTIONS)

## bench-moves    a tablet that moves while it is written to: how long its calls wait, log, memory
bench-moves: build/cellar build/cellar-benchmark
	@$(PYTHON) tools/bench/moves.py $(BENCH_OPTIONS)

## bench-feeds    what feeds cost, XREAD beside redis-server, from a write to its reader
bench-feeds: build/cellar
	@$(PYTHON) tools/bench/feeds.py $(BENCH_OPTIONS)

## bench-threads  CPU of commands by thread, with io-threads 1 and 2
bench-threads: build/cellar
	@$(PYTHON) tools/bench/threads.py $(BENCH_OPTIONS)

## bench-transfer  exports and imports beside scans, HEAT of a day: CELLS=10000000, ten minutes
bench-transfer: build/cellar build/cellar-benchmark build/cellar-export build/cellar-import
	@$(PYTHON) tools/bench/transfer.py --cells $(CELLS) $(BENCH_OPTIONS)

## bench-tls      CPU of commands over TLS beside redis-server, whose Debian build has TLS too
bench-tls: build/cellar
	@$(PYTHON) tools/bench/tls.py $(BENCH_OPTIONS)

## bench-instructions user instructions per command, by callgrind: the same on any machine
bench-instructions: build/cellar build/cellar-benchmark
	@$(PYTHON) tools/bench/instructions.py $(BENCH_OPTIONS)

## pictures       heat maps of known loads, a screen of cellar-top, cellar-web's page, into build/pictures
pictures: build/cellar build/cellar-heatmap build/cellar-top build/cellar-web
	@$(PYTHON) tools/pictures.py build/pictures

## bench-btree    the B-tree beside std::map and absl::btree_map: BTREE_CELLS=10000000 takes ten minutes
BTREE_CELLS ?= 10000000
bench-btree: build/bench-btree
	build/bench-btree --cells $(BTREE_CELLS)

## format         rewrite the sources as clang-format 14 has them
FORMAT_FILES = $(shell find src include tests tools -name '*.cc' -o -name '*.h' -o -name '*.c')
format:
	@printf '%s\n' $(FORMAT_FILES) | xargs -r -P$(JOBS) -n16 clang-format -i
format-check:
	@printf '%s\n' $(FORMAT_FILES) | xargs -r -P$(JOBS) -n16 clang-format --dry-run -Werror

## tidy           layers, lengths and clang-tidy over everything
tidy:
	@$(PYTHON) tools/tidy.py --clang-tidy all

## alone          compile each file by itself, with nothing read before it
ALONE_CHECKS := $(SOURCES:%.cc=build/alone/%.checked) $(TOOL_SOURCES:%.cc=build/alone/%.checked)
alone: $(ALONE_CHECKS)
$(ALONE_CHECKS): build/alone/%.checked: %.cc
	@mkdir -p $(@D)
	@echo "check $<"
	$(Q)$(CXX) $(CXXFLAGS) -MF $@.d -MT $@ -fsyntax-only $< && touch $@
-include $(shell find build/alone -name '*.d' 2>/dev/null)

## check          format, layers, lengths, clang-tidy on changed files, unit tests; fuzzers compile
check: format-check
	@$(PYTHON) tools/tidy.py --clang-tidy changed
	$(MAKE) -j$(JOBS) $(BUILD)/unit-tests.passed $(FUZZ_OBJECTS)

#: demo           load this machine's Debian package index and ask it a dozen questions
demo: deps
	$(MAKE) -j$(JOBS) all
	@$(PYTHON) tools/demo/demo.py

#: demo-set       three nodes on this machine: kill -9 of their leader loses nothing
demo-set: deps
	@$(MAKE) -j$(JOBS) build/cellar
	@$(PYTHON) tools/demo/set.py

#: demo-cluster   three sets of three nodes on this machine: a million cells, a leader killed under a scan
demo-cluster: deps
	@$(MAKE) -j$(JOBS) build/cellar build/cellar-cluster build/cellar-import
	@$(PYTHON) tools/demo/cluster.py

#: manual         the man pages as HTML, in build/manual/index.html
manual: all
	@tools/deps.sh mandoc
	@$(PYTHON) tools/man.py build/manual --html

#: install        into PREFIX (/usr/local) and SYSCONFDIR (/etc), below DESTDIR
install: all library
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/cellar $(INSTALLED_TOOLS:%=$(BUILD)/%)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib $(BUILD)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libcellar.so
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' conf/cellar.pc >$(DESTDIR)$(PREFIX)/lib/pkgconfig/cellar.pc
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/cellar include/cellar/*.h
	tools/install.sh "$(DESTDIR)" "$(PREFIX)" "$(SYSCONFDIR)"

#: deb            build the packages cellar, libcellar-dev and python3-cellar, in build/
deb: all library
	tools/deb.sh $(BUILD)

## clean          remove build/
clean:
	rm -rf build

#: help           this list
help:
	@echo "To use Cellar:"; sed -n 's/^#: /  make /p' $(firstword $(MAKEFILE_LIST))
	@echo "To work on it:"; sed -n 's/^## /  make /p' $(firstword $(MAKEFILE_LIST))

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
