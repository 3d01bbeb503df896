// Whether this is a build with a sanitizer, which watches malloc and expects all of it to be freed.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CELLAR_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CELLAR_SANITIZER 1
#endif
#endif
