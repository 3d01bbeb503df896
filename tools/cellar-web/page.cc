// See page.h. The assembler takes the files in as they are; the Makefile knows that this depends on
// them.
#include "cellar-web/page.h"

#define CELLAR_PAGE_FILE(name, path)                                                    \
  __asm__(".section .rodata\n.global page_" #name "\npage_" #name ":\n.incbin \"" path  \
          "\"\n.global page_" #name "_end\npage_" #name "_end:\n.byte 0\n.previous\n"); \
  extern "C" const char page_##name[];                                                  \
  extern "C" const char page_##name##_end[]

CELLAR_PAGE_FILE(index, "tools/cellar-web/page/index.html");
CELLAR_PAGE_FILE(style, "tools/cellar-web/page/style.css");
CELLAR_PAGE_FILE(icon, "tools/cellar-web/page/icon.svg");
CELLAR_PAGE_FILE(script, "tools/cellar-web/page/app.js");

namespace cellar::web {

std::span<const PageFile> PageFiles() {
  static const PageFile kFiles[]{
      {"/", "text/html; charset=utf-8", {page_index, page_index_end}},
      {"/style.css", "text/css; charset=utf-8", {page_style, page_style_end}},
      {"/icon.svg", "image/svg+xml", {page_icon, page_icon_end}},
      {"/app.js", "text/javascript; charset=utf-8", {page_script, page_script_end}},
  };
  return kFiles;
}

}  // namespace cellar::web
