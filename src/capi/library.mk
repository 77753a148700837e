# libstreamfilter.a and .so: the core behind include/streamfilter/streamfilter.h, for other programs. Included by the
# Makefile. Its objects are apart from the extension's: without link-time optimization, which ties them to one compiler.

LIBRARY_VERSION = 1
LIBRARY_SOURCES = $(CORE_SOURCES) $(sort $(wildcard src/capi/*.cpp))
LIBRARY_OBJS = $(patsubst %.cpp,build/library/%.o,$(LIBRARY_SOURCES))
LIBRARY_SONAME = libstreamfilter.so.$(LIBRARY_VERSION)
LIBRARY_FILES = $(addprefix build/library/,libstreamfilter.a $(LIBRARY_SONAME) streamfilter.pc)

# PostgreSQL's own places: that of libpq-fe.h, and that of libpq.
LIBRARY_INCLUDEDIR = $(includedir)/streamfilter
LIBRARY_PKGCONFIGDIR = $(libdir)/pkgconfig

library: $(LIBRARY_FILES)

COMPILE_LIBRARY = $(CCACHE) $(CXX) $(CXXFLAGS) $(LANGUAGE) $(WARNINGS) -Wconversion -fvisibility=hidden \
                  -fvisibility-inlines-hidden -fPIC -Isrc $(LAYER_WALL) -Iinclude -MMD -MP
build/library/library.flags: export FLAGS = $(COMPILE_LIBRARY)

build/library/%.o: %.cpp build/library/library.flags
	@mkdir -p $(@D)
	$(COMPILE_LIBRARY) -c -o $@ $<

build/library/libstreamfilter.a: $(LIBRARY_OBJS)
	rm -f $@
	$(AR) rcs $@ $^

build/library/$(LIBRARY_SONAME): $(LIBRARY_OBJS) src/capi/libstreamfilter.map
	$(CXX) $(LDFLAGS) -shared -Wl,-soname,$(LIBRARY_SONAME) -Wl,--version-script=src/capi/libstreamfilter.map \
	  -Wl,-z,defs -o $@ $(LIBRARY_OBJS)
	ln -sf $(LIBRARY_SONAME) build/library/libstreamfilter.so

build/library/streamfilter.pc: src/capi/streamfilter.pc.in
	@mkdir -p $(@D)
	sed -e 's|@VERSION@|$(EXTVERSION)|' -e 's|@INCLUDEDIR@|$(includedir)|' -e 's|@LIBDIR@|$(libdir)|' $< > $@

# LIBRARY=no leaves it out: packages of several servers could not all have it.
ifneq ($(LIBRARY),no)
install: install-library
endif
install-library: $(LIBRARY_FILES)
	$(MKDIR_P) '$(DESTDIR)$(LIBRARY_INCLUDEDIR)' '$(DESTDIR)$(libdir)' '$(DESTDIR)$(LIBRARY_PKGCONFIGDIR)'
	$(INSTALL_DATA) include/streamfilter/streamfilter.h '$(DESTDIR)$(LIBRARY_INCLUDEDIR)/'
	$(INSTALL_DATA) build/library/libstreamfilter.a '$(DESTDIR)$(libdir)/'
	$(INSTALL_SHLIB) build/library/$(LIBRARY_SONAME) '$(DESTDIR)$(libdir)/'
	ln -sf $(LIBRARY_SONAME) '$(DESTDIR)$(libdir)/libstreamfilter.so'
	$(INSTALL_DATA) build/library/streamfilter.pc '$(DESTDIR)$(LIBRARY_PKGCONFIGDIR)/'

ifneq ($(LIBRARY),no)
uninstall: uninstall-library
endif
uninstall-library:
	rm -rf '$(DESTDIR)$(LIBRARY_INCLUDEDIR)'
	rm -f $(addprefix '$(DESTDIR)$(libdir)'/,libstreamfilter.a libstreamfilter.so $(LIBRARY_SONAME)) \
	  '$(DESTDIR)$(LIBRARY_PKGCONFIGDIR)/streamfilter.pc'

# The C test is compiled as C, against each of the two, and the header alone as C++ as well.
C_TEST_FLAGS = -std=c11 -Wall -Wextra -Werror -pedantic -Iinclude

build/library/test_static: test/capi/capi_test.c build/library/libstreamfilter.a include/streamfilter/streamfilter.h
	$(CC) $(C_TEST_FLAGS) -o $@ $< build/library/libstreamfilter.a -lstdc++ -lm

build/library/test_shared: test/capi/capi_test.c build/library/$(LIBRARY_SONAME) include/streamfilter/streamfilter.h
	$(CC) $(C_TEST_FLAGS) -o $@ $< -Lbuild/library -lstreamfilter -Wl,-rpath,'$$ORIGIN' -lm

check-library: build/library/test_static build/library/test_shared
	build/library/test_static
	build/library/test_shared
	echo '#include "streamfilter/streamfilter.h"' | $(CXX) -std=c++11 -Wall -Wextra -Werror -pedantic -Iinclude -fsyntax-only -x c++ -
	@! nm -D --defined-only build/library/$(LIBRARY_SONAME) | grep -v ' sflt_\| SFLT_' || { echo "the library shows more than its interface"; exit 1; }
	@! nm -C build/library/src/capi/*.o | grep -E ' U (operator new|operator delete|__cxa_throw|malloc|free)'

-include $(LIBRARY_OBJS:.o=.d)

.PHONY: library install-library uninstall-library check-library
