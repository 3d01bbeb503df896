#!/usr/bin/python3
"""`make pictures`: heat maps of loads that everybody knows, what cellar-top prints beside them, and cellar-web's page.

    pictures.py DIR

A server of its own, with a clock that is set minute by minute, gets a zipf load, rows that are appended, and scans.
Written are DIR/zipf.svg, .png, .txt, the same of `sequential` and `scan`, DIR/top.txt and, where a browser can be
driven, DIR/web-PAGE-WIDTH-SCHEME.png: the overview, rows, a row and the heat map, 1280 and 390 pixels wide, light and
dark. DIR/readme-heat.png, readme-top.svg and readme-web.svg are
those that README.md shows from conf/pictures/.
"""

import base64
import html
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import redis

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINUTES = 60
ROWS = 20_000
BEGIN = 1_795_400_400_000_000  # microseconds


def program(name):
    return os.path.join(ROOT, "build", name)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_all(client, commands):
    pipe = client.pipeline(transaction=False)
    for number, words in enumerate(commands):
        pipe.execute_command(*words)
        if number % 2000 == 1999:
            pipe.execute()
    pipe.execute()


def row(number):
    return f"user{number:08d}"


def zipf(client, rng, minute):
    """A few rows are famous, and one of them only for a while."""
    if minute == 0:
        run_all(client, (("CPUT", "zipf", row(number), "f:q", "x" * 40) for number in range(ROWS)))
    reads = [("CGET", "zipf", row(int(ROWS ** rng.random()) * 7919 % ROWS), "f:q") for _ in range(3000)]
    if 20 <= minute < 35:
        reads += [("CGET", "zipf", row(ROWS // 3), "f:q")] * 3000
    run_all(client, reads)


def sequential(client, rng, minute):
    """Keys that grow with time."""
    run_all(client, (("CPUT", "sequential", row(minute * 3000 + number), "f:q", "x" * 40) for number in range(3000)))


def scan(client, rng, minute):
    """Point reads all over, and now and then somebody reads everything, or a tenth."""
    if minute == 0:
        run_all(client, (("CPUT", "scan", row(number), "f:q", "x" * 40) for number in range(ROWS)))
    run_all(client, [("CGET", "scan", row(rng.randrange(ROWS)), "f:q") for _ in range(1000)])
    if minute % 15 == 5:
        client.execute_command("CCOUNT", "scan", "WHERE", "f:q", "EQ", "none")
    if minute % 7 == 0:
        client.execute_command("CCOUNT", "scan", "RANGE", f"[{row(ROWS // 2)}", f"({row(ROWS * 6 // 10)}", "WHERE",
                               "f:q", "EQ", "none")


def text_picture(text, path):
    """What a terminal shows, as SVG."""
    lines = text.rstrip("\n").split("\n")
    width, height = 8 * max(map(len, lines)) + 24, 17 * len(lines) + 20
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
                   f'<rect width="{width}" height="{height}" rx="6" fill="#16161c"/>\n'
                   '<g font-family="monospace" font-size="13" fill="#d8d8e0">\n')
        for number, line in enumerate(lines):
            # The width is given, so that columns stand below each other in every font.
            if line.strip():
                file.write(f'<text x="12" y="{24 + 17 * number}" textLength="{8 * len(line)}" lengthAdjust="spacingAndGlyphs">'
                           f'{html.escape(line).replace(" ", chr(0xa0))}</text>\n')
        file.write("</g>\n</svg>\n")


def page_picture(browser, path):
    """The page as it is now, its own HTML and style inside an SVG: no script, no network, some kilobytes."""
    markup = browser.execute_script(
        """const copy = document.documentElement.cloneNode(true);
        copy.querySelectorAll('script, link, meta, [hidden]').forEach((node) => node.remove());
        const style = document.createElement('style');
        style.textContent = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
            .map((rule) => rule.cssText).join('\\n') + ' html { overflow: hidden; background: white; }';
        copy.querySelector('head').append(style);
        return new XMLSerializer().serializeToString(copy);""")
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="1100" height="660" viewBox="0 0 1100 660">\n'
                   '<foreignObject width="1100" height="660">\n' + markup + "\n</foreignObject>\n</svg>\n")


def page(port, out):
    """What cellar-web shows, as a headless Chromium draws it."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return print("no pictures of the page: python3-selenium is not there")
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        return print("no pictures of the page: chromium and chromium-driver are not there")
    web = subprocess.Popen([program("cellar-web"), "-p", str(port), "--listen", "0"], stdout=subprocess.PIPE, text=True)
    address = web.stdout.readline().strip()
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1100,800"):
        options.add_argument(word)
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    try:
        def name_of(table):
            return base64.urlsafe_b64encode(f"0/{table}".encode()).decode().rstrip("=")
        pages = {"overview": "", "rows": "table/" + name_of("zipf"), "heat": "heat/" + name_of("zipf"),
                 "row": f"table/{name_of('zipf')}/row/" + base64.urlsafe_b64encode(row(1).encode()).decode().rstrip("=")}
        browser.get(f"{address}#/")
        time.sleep(7)  # until its curves are seen to be curves
        page_picture(browser, os.path.join(out, "readme-web.svg"))
        for name, path in pages.items():
            browser.get(f"{address}#/{path}")
            time.sleep(2)
            for width in (1280, 390):
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False})
                for scheme in ("dark", "light"):
                    browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                            {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
                    time.sleep(0.5)
                    browser.save_screenshot(os.path.join(out, f"web-{name}-{width}-{scheme}.png"))
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    finally:
        browser.quit()
        web.terminate()
        web.wait()
    return None


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    port = free_port()
    directory = tempfile.mkdtemp(prefix="cellar-pictures-")
    server = subprocess.Popen([program("cellar"), "--port", str(port), "--bind", "127.0.0.1", "--dir", directory, "--save",
                               "", "--appendonly", "no", "--enable-debug-command", "yes", "--heat-sample", "8",
                               "--create-dir", "yes"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    try:
        for _ in range(200):
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        rng = random.Random(29)
        loads = (zipf, sequential, scan)
        for load in loads:
            client.execute_command("TABLE", "CREATE", load.__name__, "FAMILY", "f", "VERSIONS", 1)
        for minute in range(MINUTES):
            client.execute_command("DEBUG", "SET-TIME", BEGIN + minute * 60_000_000)
            for load in loads:
                load(client, rng, minute)
        for load in loads:
            name = load.__name__
            words = [program("cellar-heatmap"), "-p", str(port), name, "--from", str(BEGIN), "--metric",
                     "writes" if load is sequential else "reads"]
            path = os.path.join(out, name)
            subprocess.run([*words, "--svg", path + ".svg", "--png", path + ".png"], check=True)
            subprocess.run([*words, "--png", path + "-dark.png", "--theme", "dark"], check=True)
            with open(path + ".txt", "wb") as file:
                subprocess.run([*words, "--width", "80", "--height", "24"], check=True, stdout=file)
        subprocess.run([program("cellar-heatmap"), "-p", str(port), "zipf", "--from", str(BEGIN), "--step", "2m", "--ranges",
                        "32", "--png", os.path.join(out, "readme-heat.png")], check=True)
        page(port, out)
        client.execute_command("DEBUG", "SET-TIME", "NOW")
        top = subprocess.Popen([program("cellar-top"), "-p", str(port), "--once", "--width", "100"],
                               stdout=subprocess.PIPE)
        while top.poll() is None:
            zipf(client, rng, 1)
        shown = top.stdout.read()
        with open(os.path.join(out, "top.txt"), "wb") as file:
            file.write(shown)
        text_picture(shown.decode(), os.path.join(out, "readme-top.svg"))
    finally:
        client.close()
        server.terminate()
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(sorted(os.path.join(out, name) for name in os.listdir(out))))


if __name__ == "__main__":
    main()
