// The main function of all unit tests. It stands alone, so that the costly half of Catch2 is
// compiled once.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
