// The unit tests of the core. `make unit` runs them; `build/tests/unit_tests --list_content` lists
// what they say.
#define BOOST_TEST_MODULE streamfilter core
#include <boost/test/unit_test.hpp>
