// The unit tests of the core. `make unit` runs them; `build/tests/unit_tests --list_content` lists
// their names.
#define BOOST_TEST_MODULE streamfilter core
#if defined(BOOST_TEST_DYN_LINK)
#include <boost/test/unit_test.hpp>
#else  // for another machine there is no library to link with
#include <boost/test/included/unit_test.hpp>
#endif
