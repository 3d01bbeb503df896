// See page.h. The assembler takes the files in as they are; the Makefile knows that this depends on
// them.
#include "cellar-web/page.h"

// The scripts, each page/<name>.js.
#define CELLAR_PAGE_SCRIPTS(each)                                                                 \
  each(address) each(admin) each(alltables) each(browse) each(cells) each(cluster) each(commands) \
      each(console) each(dom) each(explain) each(frame) each(graphs) each(heat) each(keyspaces)   \
          each(main) each(overview) each(pager) each(reports) each(row) each(rowquery)            \
              each(schema) each(server) each(state) each(tables) each(text) each(value)           \
                  each(words)

#define CELLAR_PAGE_FILE(name, path)                                                    \
  __asm__(".section .rodata\n.global page_" #name "\npage_" #name ":\n.incbin \"" path  \
          "\"\n.global page_" #name "_end\npage_" #name "_end:\n.byte 0\n.previous\n"); \
  extern "C" const char page_##name[];                                                  \
  extern "C" const char page_##name##_end[];

#define CELLAR_PAGE_SCRIPT_FILE(name) \
  CELLAR_PAGE_FILE(script_##name, "tools/cellar-web/page/" #name ".js")

CELLAR_PAGE_FILE(index, "tools/cellar-web/page/index.html")
CELLAR_PAGE_FILE(style, "tools/cellar-web/page/style.css")
CELLAR_PAGE_FILE(icon, "tools/cellar-web/page/icon.svg")
CELLAR_PAGE_SCRIPTS(CELLAR_PAGE_SCRIPT_FILE)

namespace cellar::web {

std::span<const PageFile> PageFiles() {
#define CELLAR_PAGE_SCRIPT_ROW(name)         \
  PageFile{"/" #name ".js",                  \
           "text/javascript; charset=utf-8", \
           {page_script_##name, page_script_##name##_end}},
  static const PageFile kFiles[]{
      {"/", "text/html; charset=utf-8", {page_index, page_index_end}},
      {"/style.css", "text/css; charset=utf-8", {page_style, page_style_end}},
      {"/icon.svg", "image/svg+xml", {page_icon, page_icon_end}},
      CELLAR_PAGE_SCRIPTS(CELLAR_PAGE_SCRIPT_ROW)};
  return kFiles;
}

}  // namespace cellar::web
