# streamfilter. `make help` says what there is; README.md how to begin.
EXTENSION = streamfilter
# The one place where the version stands is the control file; `make check-version` holds the others against it.
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" streamfilter.control)
MODULE_big = streamfilter
PG_CONFIG ?= pg_config

# Files of folder $(1), at any depth, whose names match $(2).
files = $(sort $(shell find $(1) -name '$(2)'))

CORE_SOURCES := $(call files,src/core,*.cpp)
PG_SOURCES := $(call files,src/pg,*.cpp)

# A key passes through many small files; the linker inlines across them. `make LTO=` is for work on the code: one changed file is compiled and linked in seconds.
LTO = $(if $(findstring clang,$(CXX)),,-flto=auto)

# Objects lie in a folder for each flavour of them, build/FLAVOUR. A file there remembers the flags, and objects are
# compiled again when they differ: nothing is ever linked from two sets of flags.
PG_MAJOR := $(shell $(PG_CONFIG) --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
FLAVOUR = pg$(PG_MAJOR)$(if $(LTO),,-nolto)
SANITIZE = -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all

# Flavours for tests. quick: without link-time optimization. sanitized: with the address and undefined-behaviour sanitizers.
# faults (or FAULTS=1): what must not raise ends the server if it could, and sessions can be stopped at named points
# (src/pg/server/no_raise.hpp, fault_points.hpp). arm64: the core alone, by a cross compiler (check-arm64). toy: with one more
# kind, test/toy, which the loops over kinds must meet; what is not of the core is that of faults.
ifeq ($(FAULTS),1)
FLAVOUR = faults
endif
ifneq ($(filter quick sanitized faults arm64 toy,$(FLAVOUR)),)
override LTO =
override with_llvm = no
endif
ifeq ($(FLAVOUR),sanitized)
PG_CXXFLAGS += -O1 -g1 $(SANITIZE)
endif
BUILD := build/$(FLAVOUR)
PG_BUILD := $(if $(filter toy,$(FLAVOUR)),build/faults,$(BUILD))

# A kind is one file, a number and two lines. Headers with these come before those of src.
ifeq ($(FLAVOUR),toy)
TOY_SOURCES = test/toy/toy_kind.cpp
WITH_TOY = $(BUILD)/headers/core/format/parameters.hpp $(BUILD)/headers/core/kind/kind_list.hpp
TOY_INCLUDE = -I$(BUILD)/headers
endif

OBJS = $(CORE_SOURCES:%.cpp=$(BUILD)/%.o) $(TOY_SOURCES:%.cpp=$(BUILD)/%.o) $(PG_SOURCES:%.cpp=$(PG_BUILD)/%.o)

DATA_built = sql/$(EXTENSION)--$(EXTVERSION).sql
DATA = $(sort $(wildcard sql/update/$(EXTENSION)--*--*.sql))
SQL_PARTS = $(sort $(wildcard sql/[0-9]*.sql))

REGRESS = $(patsubst test/sql/%.sql,%,$(sort $(wildcard test/sql/*.sql)))
# UTF8: some tests need ICU collations.
REGRESS_OPTS = --inputdir=test --encoding=UTF8
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl
# Most tests need a server that preloads the library, and one of their own: `make check`. What needs neither is the
# installcheck of this file, not that of PGXS.
NO_INSTALLCHECK = 1
WITHOUT_PRELOADING = value value_input aggregate partial_aggregates distinct evaluate advise slice_of

# Neither layer throws, so exceptions are off everywhere and none can meet a longjmp.
LANGUAGE = -std=c++20 -fno-exceptions -fno-rtti -Wno-register
WARNINGS = -Wall -Wextra -Wshadow
VISIBILITY = -fvisibility=hidden -fvisibility-inlines-hidden \
             '-DPGDLLEXPORT=__attribute__((visibility("default")))'
EXTRA_CLEAN = build $(EXTENSION)-*.zip compile_commands.json sql/$(EXTENSION)--$(EXTVERSION).sql tmp_check tmp_check_iso \
              output_iso results log regression.diffs regression.out

# Filters on other servers are reached by libpq.
PG_CPPFLAGS = -I$(shell $(PG_CONFIG) --includedir)
SHLIB_LINK += -lpq

ifneq ($(filter faults toy,$(FLAVOUR)),)
PG_CPPFLAGS += -DSTREAMFILTER_FAULTS
WATCHED = SearchSysCache1 table_open LockRelationOid GetCurrentFullTransactionId repalloc hash_search \
          AllocSetContextCreateInternal AllocateFile ProcessInterrupts WaitLatch WaitLatchOrSocket \
          ConditionVariableSleep LWLockAcquire
SHLIB_LINK += $(WATCHED:%=-Wl,--wrap=%)
endif

# The link needs the C++ runtime.
override COMPILER = $(CXX) $(CXXFLAGS) $(LTO)

PGXS := $(shell $(PG_CONFIG) --pgxs)
# No bitcode unless asked for (make with_llvm=yes, by the server's clang): JIT could inline nothing of it, and it takes most of the time.
ifneq ($(origin with_llvm),command line)
override with_llvm = no
endif
include $(PGXS)

help:
	@sed -n 's/^#: //p' $(firstword $(MAKEFILE_LIST))

#: make                    the extension; LTO= for work on it: a changed file is compiled and linked in seconds
#: make install            PG_CONFIG=/path/of/pg_config chooses the server
#: make flavour            the extension as build/FLAVOUR/streamfilter.so; FLAVOUR=quick|sanitized|faults|toy, for tests
#: make library            libstreamfilter, the core for other programs
#: make quick              what test/all.sh runs, and nothing is installed: it works, in some minutes
#: make check              unit tests, rules, and all suites that need a server; test/all.sh --everything runs more
#: make unit               UNIT_RUN_OPTS=--run_test=bloom_filter runs a part, --list_content lists them
#: make unit-sanitize      the same with address and undefined-behaviour sanitizers
#: make check-regress      REGRESS="trigger relation" runs some; check-isolation ISOLATION="conflict";
#:                         check-tap PROVE_TESTS=test/t/crash_random.pl
#: make check-arm64        the core cross-built for arm64, and its unit tests under qemu
#: make check-model        random transactions against an exact model; MODEL_SECONDS=3600 MODEL_SEED=1
#: make check-chaos        servers of slices lost in every way; CHAOS_SECONDS=600 CHAOS_SEED=1
#: make check-soak         what accumulates stays within its bounds; SOAK_HOURS=8 SOAK_SEED=1
#: make check-layers       what the rooms of src/ROOMS may include, and what the core may not
#: make check-clang        every source through clang, for its warnings
#: make bench              programs that measure, in build/bench
#: make walk               which functions a trigger's row and a line of COPY pass; fails where they are too many
#: make format             clang-format 14 on all sources; check-format only looks
#: make lint               clang-tidy, shellcheck, perlcritic; lint-scripts does without the first
#: make compile_commands   compile_commands.json, for editors
#: make installcheck       the tests that need no preloading, in a server that runs
#: make dist               the sources of the last commit as streamfilter-VERSION.zip, for PGXN
#: make release            the same with FILES="*.deb…" in build/release, their checksums, and a signature by KEY=…
#: make versions           each place that knows which versions of PostgreSQL are supported
#: make site               the documents as pages, in build/site
#: make clean

# A cache of compilations is used if there is one.
CCACHE := $(shell command -v ccache 2>/dev/null)
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

# The core is compiled without any path to server headers, and behind a wall against them.
LAYER_WALL = -include core/base/layer_wall.hpp
COMPILE_CORE = $(CCACHE) $(CXX) $(CXXFLAGS) $(LANGUAGE) $(WARNINGS) -Wconversion $(LTO) $(VISIBILITY) -fPIC $(TOY_INCLUDE) -Isrc \
               $(LAYER_WALL) -MMD -MP
COMPILE_PG = $(CCACHE) $(CXX) $(CXXFLAGS) $(LANGUAGE) $(WARNINGS) $(LTO) $(VISIBILITY) -fPIC -Isrc \
             $(patsubst -I%,-isystem %,$(CPPFLAGS)) -MMD -MP

$(BUILD)/src/core/%.o: src/core/%.cpp $(BUILD)/core.flags | $(WITH_TOY)
	@mkdir -p $(@D)
	$(COMPILE_CORE) -c -o $@ $<

$(BUILD)/test/toy/%.o: test/toy/%.cpp $(BUILD)/core.flags | $(WITH_TOY)
	@mkdir -p $(@D)
	$(COMPILE_CORE) -c -o $@ $<

$(BUILD)/headers/%.hpp: src/%.hpp test/toy/add_kind.awk
	@mkdir -p $(@D)
	awk -f test/toy/add_kind.awk $< >$@.new && mv $@.new $@

$(PG_BUILD)/src/pg/%.o: src/pg/%.cpp $(PG_BUILD)/pg.flags
	@mkdir -p $(@D)
	$(COMPILE_PG) -MT $@ -MT $(@:.o=.bc) -c -o $@ $<

# Bitcode for the server's JIT; warnings were shown when the objects were compiled.
$(BUILD)/%.bc: %.cpp $(BUILD)/pg.flags
	@mkdir -p $(@D)
	$(COMPILE.cxx.bc) $(LANGUAGE) $(VISIBILITY) -w -Isrc -o $@ $<

# The library that was linked last may be of another flavour.
$(MODULE_big)$(DLSUFFIX): build/linked.flags

# Written only when the text is another one than before.
$(BUILD)/core.flags: export FLAGS = $(COMPILE_CORE)
$(PG_BUILD)/pg.flags: export FLAGS = $(COMPILE_PG) $(BITCODE_CXXFLAGS)
build/linked.flags $(BUILD)/link.flags: export FLAGS = $(BUILD) $(LINK.shared) $(LDFLAGS) $(LDFLAGS_SL) $(SHLIB_LINK)
build/bench/bench.flags: export FLAGS = $(COMPILE_BENCH) $(BUILD)
%.flags: always
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS" | cmp -s - $@ || printf '%s\n' "$$FLAGS" >$@
.PRECIOUS: %.flags

-include $(OBJS:.o=.d)

# The extension in a flavour, beside its objects.
flavour: $(BUILD)/$(MODULE_big)$(DLSUFFIX)

$(BUILD)/$(MODULE_big)$(DLSUFFIX): $(OBJS) $(BUILD)/link.flags
	$(LINK.shared) -o $@ $(OBJS) $(LDFLAGS) $(LDFLAGS_SL) $(SHLIB_LINK)

sql/$(EXTENSION)--$(EXTVERSION).sql: $(SQL_PARTS)
	awk 'FNR == 1 && NR > 1 { print "" } 1' $^ >$@

scripts: $(DATA_built)

quick:
	INSTALL=no PG_CONFIG=$$(command -v $(PG_CONFIG)) test/all.sh

include src/capi/library.mk

# The core for tests and benchmarks: that of the C library, which links without link-time optimization, or a sanitized one.
CORE_OBJS = $(TOY_SOURCES:%.cpp=$(BUILD)/%.o) $(CORE_SOURCES:%.cpp=$(if $(filter sanitized arm64 toy,$(FLAVOUR)),$(BUILD),build/library)/%.o)

# ---- unit tests of the core -------------------------------------------------------------------

# Nearly all that a test costs the compiler are Boost's templates: its headers are read once, and what tests do beside
# calling the core needs little optimization, none with sanitizers. No null checks in tests: the address sanitizer sees
# what they would.
UNIT_SOURCES := $(call files,test/unit,*_test.cpp) test/unit/support/main.cpp
# With a toy kind, those that loop over the kinds.
ifeq ($(FLAVOUR),toy)
UNIT_SOURCES := $(shell grep -lE 'all_ops|kKinds|every_kind' $(UNIT_SOURCES)) test/unit/support/main.cpp test/toy/toy_test.cpp
endif
TESTS = build/tests$(patsubst %,-%,$(filter sanitized arm64 toy,$(FLAVOUR)))
UNIT_OBJS = $(UNIT_SOURCES:%.cpp=$(TESTS)/%.o)
UNIT_TESTS = $(TESTS)/unit_tests
PRECOMPILED = $(TESTS)/precompiled.hpp
INCLUDE_PRECOMPILED = -include $(PRECOMPILED)
TEST_FLAGS = $(if $(filter sanitized,$(FLAVOUR)),-O0 $(SANITIZE) -fno-sanitize=null$(comma)vptr,-O1)
comma = ,
COMPILE_TESTS = $(CCACHE) $(CXX) -std=c++20 -g1 $(TEST_FLAGS) -Wall -Wextra -Wno-register $(TOY_INCLUDE) -Isrc -Itest -I. \
                $(BOOST_TEST) -MMD -MP
BOOST_TEST = -DBOOST_TEST_DYN_LINK
LINK_TESTS = -lboost_unit_test_framework

$(TESTS)/tests.flags: export FLAGS = $(COMPILE_TESTS)

$(PRECOMPILED).gch: test/unit/support/precompiled.hpp $(TESTS)/tests.flags
	@mkdir -p $(@D)
	@cp $< $(PRECOMPILED)
	$(COMPILE_TESTS) -x c++-header -o $@ $<

$(TESTS)/%.o: %.cpp $(PRECOMPILED).gch | $(WITH_TOY)
	@mkdir -p $(@D)
	$(COMPILE_TESTS) $(INCLUDE_PRECOMPILED) -c -o $@ $<

# A file of the server side, which needs no server.
$(TESTS)/test/unit/transaction/%.o: COMPILE_TESTS += -iquote test/unit/support/no_server

# Names the test module, which must come before Boost's headers.
$(TESTS)/test/unit/support/main.o: INCLUDE_PRECOMPILED =

$(UNIT_TESTS): $(CORE_OBJS) $(UNIT_OBJS)
	$(CXX) $(TEST_FLAGS) -o $@ $^ $(LINK_TESTS) -pthread

-include $(UNIT_OBJS:.o=.d)

UNIT_RUN_OPTS ?= --report_level=short

unit: $(UNIT_TESTS)
	$(EMULATOR) $(UNIT_TESTS) $(UNIT_RUN_OPTS)

# Without those labelled long: rates over millions of keys, through code that others run, too. UNIT_RUN_OPTS= runs all.
unit-sanitize check-arm64: UNIT_RUN_OPTS := $(UNIT_RUN_OPTS) --run_test='!@long'
# Seconds of an emulator say nothing.
check-arm64: UNIT_RUN_OPTS += --run_test='!advice/advice_does_not_loop_over_rows'
unit-sanitize:
	+$(MAKE) --no-print-directory FLAVOUR=sanitized UNIT_RUN_OPTS="$(UNIT_RUN_OPTS)" unit

# For another machine, on this one: of libraries only what headers alone provide, as those of ours suit every machine.
ARM64_CXX := $(shell command -v aarch64-linux-gnu-g++)
ARM64_EMULATOR := $(firstword $(shell command -v qemu-aarch64-static qemu-aarch64))
ARM64_INCLUDE = build/arm64/include
ARM64_FLAGS = -isystem $(ARM64_INCLUDE) -Wno-psabi
ARM64 = FLAVOUR=arm64 CXX=$(notdir $(ARM64_CXX)) CXXFLAGS='-O2 -g1 -Werror $(ARM64_FLAGS)' EMULATOR=$(ARM64_EMULATOR) \
        BOOST_TEST='$(ARM64_FLAGS)' LINK_TESTS=-static

check-arm64:
ifeq ($(and $(ARM64_CXX),$(ARM64_EMULATOR)),)
	@echo "skip: there is no g++-aarch64-linux-gnu, or no qemu-user-static"
else
	@mkdir -p $(ARM64_INCLUDE)
	@ln -sfn $(foreach name,boost xxhash.h xxh3.h,/usr/include/$(name)) $(ARM64_INCLUDE)/
	+$(MAKE) --no-print-directory $(ARM64) UNIT_RUN_OPTS="$(UNIT_RUN_OPTS)" unit
endif

# ---- rules of the house -----------------------------------------------------------------------

# `check-rooms`: every include stays within src/ROOMS, and docs/pictures/rooms.svg shows them. The core must not see
# PostgreSQL, throw or allocate; server headers come in through postgres.hpp alone.
check-layers: check-rooms check-version check-refusals $(CORE_OBJS)
	@! grep -nE '#include [<"](postgres|utils/|access/|storage/|pg/)' -r src/core
	@! grep -lE '#include "postgres.h"' -r src | grep -v '^src/pg/server/postgres.hpp$$'
	@! grep -nP '"[^"]*[^\x00-\x7F][^"]*"' $(CORE_SOURCES) $(PG_SOURCES) || { echo "messages must be ASCII: databases have other encodings"; exit 1; }
	@! grep -nE 'Register(Sub)?XactCallback' -r src --include=*.cpp | grep -v '^src/pg/server/hooks.cpp:' || \
	  { echo "callbacks are registered in src/pg/server/hooks.cpp alone"; exit 1; }
	@! nm -C $(CORE_OBJS) | grep -E ' U (operator new|operator delete|__cxa_throw|malloc|free|palloc|errstart)'
	@echo "layers: ok"

# Every place that names the version; packages want three numbers.
says = @grep -q '$(2)' $(1) || { echo "$(1) does not say $(strip $(3)): it must have a line $(2)"; exit 1; }

check-version:
	@perl test/check_meta.pl $(EXTVERSION).0
	$(call says,debian/changelog,^streamfilter ($(EXTVERSION).0),$(EXTVERSION).0)
	$(call says,rpm/streamfilter.spec,^Version: $(EXTVERSION).0$$,$(EXTVERSION).0)
	$(call says,CHANGELOG.md,^## $(EXTVERSION),$(EXTVERSION))
	$(call says,MAINTAINERS.md,^| $(EXTVERSION) |,$(EXTVERSION))
	@[ -d test/golden/$(EXTVERSION) ] || { echo "test/golden has no files of version $(EXTVERSION)"; exit 1; }
	@echo "version: $(EXTVERSION) everywhere"

# PGXN takes a zip whose files lie in a folder of its name.
DIST = $(EXTENSION)-$(EXTVERSION).0
dist: check-version
	git archive --format=zip --prefix=$(DIST)/ -o $(DIST).zip HEAD
	@unzip -l $(DIST).zip | grep -q ' $(DIST)/META.json$$' && echo "$(DIST).zip"

# What is published: the sources, FILES beside them (packages), SHA256SUMS, and its signature by the maintainer's key.
RELEASE = build/release
release: dist
	@test -n "$(KEY)" || { echo "make release KEY=…: which of your keys (gpg --list-secret-keys) signs?"; exit 1; }
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	cp $(DIST).zip $(FILES) $(RELEASE)/
	cd $(RELEASE) && sha256sum * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS
	gpg --batch --yes --local-user '$(KEY)' --armor --detach-sign $(RELEASE)/SHA256SUMS
	cd $(RELEASE) && gpg --batch --verify SHA256SUMS.asc SHA256SUMS && sha256sum --check SHA256SUMS

site:
	docs/build_site.pl

# What a new version of PostgreSQL changes besides code: each place that names the range, or a release's server.
KNOWN_VERSIONS = $(shell sed -n 's/.*knows PostgreSQL \([0-9]*\) to \([0-9]*\);.*/\1 \2/p' src/pg/server/compat.hpp)
versions:
	@git grep -nE '$(firstword $(KNOWN_VERSIONS)) to $(lastword $(KNOWN_VERSIONS))|\(.* $(lastword $(KNOWN_VERSIONS))\)$$|[ ,(](1[4-9]|[2-9][0-9])0000\b.*(VERSION|PostgreSQL)|VERSION_NUM.*00000|"PostgreSQL": "|^1[0-9]\+$$' -- \
	  '*.md' Makefile META.json debian src/pg/server/compat*.hpp test/matrix.sh ':!docs/benchmarks.md'
	@git grep -nE '^#(if|elif) PG_VERSION_NUM' -- src | cut -d: -f1 | uniq -c
	@git grep -lE 'postgresql(-server-dev)?-1[0-9]' -- Containerfile debian README.md docs test/*.sh

# Servers and machines that are none of ours are refused by one message, before anything else can fail.
refused = @printf '%s\n' $(1) | $(CXX) -E -x c++ -Isrc - 2>&1 >/dev/null | grep -q $(2) || { echo "not refused: "$(2); exit 1; }
SERVER_OF = '\#define PG_VERSION_NUM $(1)' '\#define SIZEOF_VOID_P $(2)' $(3) '\#include "pg/server/compat.hpp"'

check-refusals:
	$(call refused,$(call SERVER_OF,140000,8),"needs PostgreSQL 15 or later")
	$(call refused,$(call SERVER_OF,200000,8),"knows PostgreSQL 15 to 19")
	$(call refused,$(call SERVER_OF,150000,4),"needs a server of 64 bits")
	$(call refused,$(call SERVER_OF,150000,8,'#define WORDS_BIGENDIAN 1'),"needs a little-endian machine")
	$(call refused,'#undef __BYTE_ORDER__' '#define __BYTE_ORDER__ __ORDER_BIG_ENDIAN__' '#include "core/format/layout.hpp"',"big-endian machines are not supported")
	$(call refused,'#undef __SIZEOF_POINTER__' '#define __SIZEOF_POINTER__ 4' '#include "core/format/layout.hpp"',"machines of 32 bits are not supported")
	@echo "refusals: ok"

# All sources through clang; what it warns of is an error. Nothing is linked. Headers of a server that gcc has compiled have
# attributes that only gcc knows, and macros that count in what is volatile, like HOLD_INTERRUPTS; gcc warns where we do.
ANY_CLANG := $(firstword $(shell command -v clang++ clang++-19 clang++-14))
CHECK_CLANG = $(ANY_CLANG) $(LANGUAGE) $(WARNINGS) -Werror -fsyntax-only -Isrc

check-clang:
ifeq ($(ANY_CLANG),)
	@echo "skip: there is no clang"
else
	@printf '%s\n' $(CORE_SOURCES) $(wildcard src/capi/*.cpp) | xargs -P 2 -n 8 $(CHECK_CLANG) -Wconversion -Iinclude
	@printf '%s\n' $(PG_SOURCES) | xargs -P 2 -n 8 $(CHECK_CLANG) -Wno-ignored-attributes -Wno-deprecated-volatile $(patsubst -I%,-isystem %,$(CPPFLAGS))
	@echo "clang: ok"
endif

check-rooms:
	@perl test/check_rooms.pl
	@perl docs/draw_rooms.pl --check

# What clang-format decides is not discussed. Another version decides otherwise, so only this one is asked.
CLANG_FORMAT = $(firstword $(shell command -v clang-format-14 clang-format))
FORMATTED = $(shell find src include test bench -name '*.[ch]pp' -o -name '*.[ch]')
HAS_FORMAT = $(findstring version 14.,$(if $(CLANG_FORMAT),$(shell $(CLANG_FORMAT) --version)))

format:
	$(CLANG_FORMAT) -i $(FORMATTED)

# Drawings in comments, which clang-format leaves alone (CommentPragmas): a ruler stands in one line, every row of a table
# from its first bar to its last, a note behind it aside, and none is longer than a line may be. And pictures of documents are as
# their programs would draw them.
COMMENT = ^ *(//|/?\*)
broken = @! LC_ALL=C.UTF-8 grep -nP '$(1)' $(FORMATTED) || { echo "broken: $(2)"; exit 1; }

check-format: check-drawings
	@$(if $(HAS_FORMAT),$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED) && echo "format: ok",echo "skip: there is no clang-format 14")

check-drawings:
	$(call broken,$(COMMENT) *-+$$,rulers)
	$(call broken,$(COMMENT) +\|(?!.*\|( +\*.*)?$$),tables)
	$(call broken,$(COMMENT) +[^| ][^|]*( \|[^|]*){3},tables)
	$(call broken,^(?=.{101}) *(//|/?\*) (---|\||  ),drawn lines)
	@for program in docs/draw_*.pl; do perl $$program --check || exit 1; done

# How each source is compiled, for editors and clang-tidy.
compile_commands: always
	@$(MAKE) --no-print-directory -nB LTO= CCACHE= flavour library $(UNIT_TESTS) | perl test/compile_commands.pl >compile_commands.json

# Not part of the tests: it takes minutes. `make lint TIDIED=src/pg/fdw/fdw_scan.cpp` looks at one file.
TIDIED = $(CORE_SOURCES) $(PG_SOURCES)

lint: lint-scripts compile_commands
	printf '%s\n' $(TIDIED) | xargs -P 2 -n 4 clang-tidy --quiet -p .

lint-scripts:
	@printf '%s\n' $(call files,bench,*.sh) $(call files,test,*.sh) .ci/run | xargs -P 2 -n 12 shellcheck -x
	@printf '%s\n' $(call files,test,*.p[lm]) | xargs -P 2 -n 40 perlcritic --quiet --profile test/perlcritic.conf
	@! grep -L '^use Sf;' test/t/*.pl | sed 's/$$/: use Sf, which looks for crashes/' | grep .
	@perl test/list_tests.pl --check
	@perl docs/plain.pl --check || { echo "words that we avoid: docs/plain.pl"; exit 1; }

# ---- measuring programs -----------------------------------------------------------------------

# The figures of the papers, recomputed, and what layouts and kinds cost: a program for each source in a folder of bench/.
# build/bench/core_speed is apart, for it needs Google Benchmark; bench/run.sh builds it.
BENCH_SOURCES := $(call files,bench,*.cpp)
BENCH_PROGRAMS = $(patsubst %.cpp,build/bench/%,$(notdir $(BENCH_SOURCES)))
COMPILE_BENCH = $(CXX) -O2 -std=c++20 -Wall -Wextra -Isrc -I. -pthread
vpath %.cpp $(sort $(dir $(BENCH_SOURCES)))

bench: $(filter-out build/bench/core_speed,$(BENCH_PROGRAMS))

walk:
	+$(MAKE) --no-print-directory FLAVOUR=quick flavour scripts
	PG_CONFIG=$$(command -v $(PG_CONFIG)) bench/row_functions.sh --check

build/bench/core_speed: BENCH_LIBS = -lbenchmark

# Those that measure time have the core as the extension has it.
BENCH_TIMED = $(addprefix build/bench/,core_speed key_costs kind_speed layouts parallel_batch sqf_figures)
TIMED_OBJS = $(CORE_SOURCES:%.cpp=$(BUILD)/%.o)

$(BENCH_TIMED): build/bench/%: %.cpp $(TIMED_OBJS) build/bench/bench.flags
	@mkdir -p $(@D)
	$(COMPILE_BENCH) $(LTO) -MMD -MP -MF $@.d -MT $@ -o $@ $< $(TIMED_OBJS) $(BENCH_LIBS)

$(filter-out $(BENCH_TIMED),$(BENCH_PROGRAMS)): build/bench/%: %.cpp $(CORE_OBJS) build/bench/bench.flags
	@mkdir -p $(@D)
	$(COMPILE_BENCH) -MMD -MP -MF $@.d -MT $@ -o $@ $< $(CORE_OBJS)

-include $(BENCH_PROGRAMS:=.d)

# ---- the model checker ------------------------------------------------------------------------

MODEL_OBJS = $(patsubst %.cpp,build/%.o,$(subst test/,,$(call files,test/model,*.cpp)))
COMPILE_MODEL = $(CCACHE) $(CXX) -O2 -g1 -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Itest/model \
                -isystem $(shell $(PG_CONFIG) --includedir)

build/model/model.flags: export FLAGS = $(COMPILE_MODEL)

build/model/%.o: test/model/%.cpp build/model/model.flags
	@mkdir -p $(@D)
	$(COMPILE_MODEL) -MMD -MP -c -o $@ $<

build/model/checker: $(MODEL_OBJS)
	$(CXX) -o $@ $^ -L$(shell $(PG_CONFIG) --libdir) -lpq

-include $(MODEL_OBJS:.o=.d)

MODEL_SECONDS = 60

check-model: $(CHECKED:all=all build/model/checker)
	CHECKER=build/model/checker test/model/run.sh $(MODEL_SECONDS) $(MODEL_SEED)

check-defects: $(CHECKED:all=all build/model/checker)
	CHECKER=build/model/checker test/model/defects.sh

# ---- tests in a server ------------------------------------------------------------------------

TEMP_CONFIG = test/streamfilter.conf
# What is brought up to date before. Nothing for a server that has its library: `make check-regress CHECKED=`.
CHECKED = all

check-regress: $(CHECKED)
	$(pg_regress_installcheck) $(REGRESS_OPTS) --temp-instance=./tmp_check \
	  --temp-config=$(TEMP_CONFIG) --load-extension=streamfilter $(REGRESS)

check-isolation: $(CHECKED)
	$(pg_isolation_regress_installcheck) $(ISOLATION_OPTS) --temp-instance=./tmp_check_iso \
	  --temp-config=$(TEMP_CONFIG) --load-extension=streamfilter $(ISOLATION)

# In a server that runs already, whatever it preloads, as whatever user: it writes files into results.
installcheck:
	@mkdir -p results && chmod a+rwx results
	$(pg_regress_installcheck) $(REGRESS_OPTS) --load-extension=streamfilter $(WITHOUT_PRELOADING)

# Before what each test adds. Sessions that a test keeps may last as long as the test, on a busy machine too. Tests use modules
# beside them.
check-tap: override PROVE_FLAGS += -I test/t
check-tap: export TEMP_CONFIG = $(CURDIR)/test/tap.conf
check-tap: export PG_TEST_TIMEOUT_DEFAULT = 600
check-tap: $(CHECKED)
	$(prove_installcheck)

# Every action within every place of an INSERT, of which check-tap runs pairs (minutes; trigger_goes.txt says what each has come to).
check-trigger-goes: export STREAMFILTER_ALL_PAIRS = 1
check-trigger-goes:
	+$(MAKE) --no-print-directory check-tap PROVE_TESTS=test/t/trigger_goes.pl

CHAOS_SECONDS = 60
SOAK_HOURS = .02

check-chaos: $(CHECKED)
	PG_CONFIG=$(PG_CONFIG) test/chaos.sh $(CHAOS_SECONDS) $(CHAOS_SEED)

check-soak: $(CHECKED)
	PG_CONFIG=$(PG_CONFIG) test/soak.sh $(SOAK_HOURS) $(SOAK_SEED)

check: unit check-layers check-library check-regress check-isolation check-tap

.PHONY: always help quick scripts release site versions check-version check-refusals check-clang check-arm64 dist installcheck format check-format check-drawings compile_commands lint lint-scripts flavour bench check-rooms unit unit-sanitize check-layers check-regress check-isolation check-tap check-trigger-goes check-model check-defects check-chaos check-soak check
