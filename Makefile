# streamfilter: make, make install, make unit, make check. See README.md.
EXTENSION = streamfilter
EXTVERSION = 1.0
MODULE_big = streamfilter
PG_CONFIG ?= pg_config

CORE_SOURCES = $(sort $(wildcard src/core/*/*.cpp))
PG_SOURCES = $(sort $(wildcard src/pg/*/*.cpp))
OBJS = $(CORE_SOURCES:.cpp=.o) $(PG_SOURCES:.cpp=.o)

DATA_built = sql/$(EXTENSION)--$(EXTVERSION).sql
SQL_PARTS = $(sort $(wildcard sql/[0-9]*.sql))

REGRESS = $(patsubst test/sql/%.sql,%,$(sort $(wildcard test/sql/*.sql)))
# UTF8: some tests need ICU collations.
REGRESS_OPTS = --inputdir=test --encoding=UTF8
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl
# These tests need a server that preloads the library: use `make check`, not `make installcheck`.
NO_INSTALLCHECK = 1

# Neither layer throws, so exceptions are off everywhere and none can meet a longjmp.
LANGUAGE = -std=c++20 -fno-exceptions -fno-rtti -Wno-register
WARNINGS = -Wall -Wextra -Wshadow
VISIBILITY = -fvisibility=hidden -fvisibility-inlines-hidden \
             '-DPGDLLEXPORT=__attribute__((visibility("default")))'
EXTRA_CLEAN = build sql/$(EXTENSION)--$(EXTVERSION).sql $(OBJS:.o=.d) tmp_check tmp_check_iso \
              output_iso results log regression.diffs regression.out

# Filters on other servers are reached by libpq.
PG_CPPFLAGS = -I$(shell $(PG_CONFIG) --includedir)
SHLIB_LINK += -lpq

# A key passes through many small files; the linker inlines across them.
LTO = $(if $(findstring clang,$(CXX)),,-flto=auto)

# The link needs the C++ runtime.
override COMPILER = $(CXX) $(CXXFLAGS) $(LTO)

# FAULTS=1, for tests only: what must not raise ends the server if it could, and sessions can be stopped at
# named points (src/pg/server/no_raise.hpp, fault_points.hpp). Installed, it takes the place of the real library.
ifeq ($(FAULTS),1)
PG_CPPFLAGS += -DSTREAMFILTER_FAULTS
WATCHED = SearchSysCache1 table_open LockRelationOid GetCurrentFullTransactionId repalloc hash_search \
          AllocSetContextCreateInternal AllocateFile ProcessInterrupts WaitLatch WaitLatchOrSocket \
          ConditionVariableSleep
SHLIB_LINK += $(WATCHED:%=-Wl,--wrap=%)
endif

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The core is compiled without any path to server headers.
src/core/%.o: src/core/%.cpp
	$(CXX) $(CXXFLAGS) $(LANGUAGE) $(WARNINGS) -Wconversion $(LTO) $(VISIBILITY) -fPIC -Isrc \
	  -MMD -MP -c -o $@ $<

src/pg/%.o: src/pg/%.cpp
	$(CXX) $(CXXFLAGS) $(LANGUAGE) $(WARNINGS) $(LTO) $(VISIBILITY) -fPIC -Isrc \
	  $(patsubst -I%,-isystem %,$(CPPFLAGS)) -MMD -MP -c -o $@ $<

# Bitcode for the server's JIT; warnings were shown when the objects were compiled.
COMPILE.cxx.bc += $(LANGUAGE) $(VISIBILITY) -w -Isrc

-include $(OBJS:.o=.d)

sql/$(EXTENSION)--$(EXTVERSION).sql: $(SQL_PARTS)
	cat $^ > $@

include src/capi/library.mk

# ---- tests ------------------------------------------------------------------------------------

UNIT_SOURCES = $(sort $(wildcard test/unit/*/*.cpp))
UNIT_FLAGS = -std=c++20 -g -Wall -Wextra -Wno-register -Isrc -Itest -I. -DBOOST_TEST_DYN_LINK -MMD -MP
UNIT_LIBS = -lboost_unit_test_framework -pthread
SANITIZE = -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all

UNIT_OBJS = $(patsubst %.cpp,build/unit/%.o,$(CORE_SOURCES) $(UNIT_SOURCES))
SANITIZED_OBJS = $(patsubst %.cpp,build/unit-sanitize/%.o,$(CORE_SOURCES) $(UNIT_SOURCES))

build/unit/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) -O2 $(UNIT_FLAGS) -c -o $@ $<

build/unit-sanitize/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) -O1 $(SANITIZE) $(UNIT_FLAGS) -c -o $@ $<

build/unit/unit_tests: $(UNIT_OBJS)
	$(CXX) -o $@ $^ $(UNIT_LIBS)

build/unit-sanitize/unit_tests: $(SANITIZED_OBJS)
	$(CXX) $(SANITIZE) -o $@ $^ $(UNIT_LIBS)

-include $(UNIT_OBJS:.o=.d) $(SANITIZED_OBJS:.o=.d)

UNIT_RUN_OPTS ?= --report_level=short

unit: build/unit/unit_tests
	build/unit/unit_tests $(UNIT_RUN_OPTS)

unit-sanitize: build/unit-sanitize/unit_tests
	build/unit-sanitize/unit_tests $(UNIT_RUN_OPTS)

# `check-rooms`: every include stays within src/ROOMS. The core must not see PostgreSQL, throw or allocate; server headers come in through
# postgres.hpp alone.
check-layers: $(CORE_SOURCES:.cpp=.o)
	@! grep -nE '#include [<"](postgres|utils/|access/|storage/|pg/)' -r src/core
	@for f in $(CORE_SOURCES); do \
	  grep -q 'core/base/layer_wall.hpp' $$f || { echo "$$f does not include the layer wall"; exit 1; }; done
	@! grep -lE '#include "postgres.h"' -r src | grep -v '^src/pg/server/postgres.hpp$$'
	@! grep -nP '"[^"]*[^\x00-\x7F][^"]*"' $(CORE_SOURCES) $(PG_SOURCES) || { echo "messages must be ASCII: databases have other encodings"; exit 1; }
	@! nm -C $(CORE_SOURCES:.cpp=.o) | grep -E ' U (operator new|operator delete|__cxa_throw|malloc|free|palloc|errstart)'
	@echo "layers: ok"

check-rooms:
	@perl test/check_rooms.pl

# The figures of the papers, recomputed, and what layouts and kinds cost: a program for each source in a folder of bench/.
# build/bench/core_speed is apart, for it needs Google Benchmark; bench/run.sh builds it.
BENCH_SOURCES = $(sort $(wildcard bench/quality/*.cpp bench/micro/*.cpp bench/papers/*/*.cpp))
vpath %.cpp $(sort $(dir $(BENCH_SOURCES)))

bench: $(filter-out build/bench/core_speed,$(patsubst %.cpp,build/bench/%,$(notdir $(BENCH_SOURCES))))

build/bench/core_speed: BENCH_LIBS = -lbenchmark

build/bench/%: %.cpp $(wildcard bench/*/*.hpp bench/papers/*/*.hpp) $(CORE_SOURCES:.cpp=.o)
	@mkdir -p $(@D)
	$(CXX) -O2 -std=c++20 -Wall -Wextra -Isrc -I. -pthread -o $@ $< $(CORE_SOURCES:.cpp=.o) $(BENCH_LIBS)

TEMP_CONFIG = test/streamfilter.conf

check-regress: all
	$(pg_regress_installcheck) $(REGRESS_OPTS) --temp-instance=./tmp_check \
	  --temp-config=$(TEMP_CONFIG) --load-extension=streamfilter $(REGRESS)

check-isolation: all
	$(pg_isolation_regress_installcheck) $(ISOLATION_OPTS) --temp-instance=./tmp_check_iso \
	  --temp-config=$(TEMP_CONFIG) --load-extension=streamfilter $(ISOLATION)

check-tap: all
	$(prove_installcheck)

check: unit check-layers check-library check-regress check-isolation check-tap

.PHONY: bench check-rooms unit unit-sanitize check-layers check-regress check-isolation check-tap check
