// What g++ reads once for a layer instead of once for each of its files (Makefile: "Precompiled").
// A file still includes all that it uses: `make alone` compiles each without this. What stands here
// is used by most files of its layer, or dear, and seldom changed: all of the layer is compiled
// anew when it is.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/text/number.h"
#include "cellar/status.h"
