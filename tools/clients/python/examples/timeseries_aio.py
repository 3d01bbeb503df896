"""timeseries.py for asyncio."""

import cellar.aio

HOUR = 3600


class Measurements:
    def __init__(self, url, **options):
        self.db = cellar.aio.Cellar(url, **options)
        self.readings = self.db.table("readings")
        self.hours = self.db.table("hours")
        self.rollup = self.db.feed("new-readings").group("rollup")

    async def create(self):
        await self.db.create_table("readings", {"v": "TYPE f64 VERSIONS 1 TTL 30d"}, key="host=utf8#-at=u64")
        await self.db.create_table("hours", {"n": "TYPE u64", "avg": "TYPE f64", "max": "TYPE f64"}, key="host=utf8#hour=u64")
        await (await self.db.create_feed("new-readings", ["readings"])).create_group("rollup")

    async def record(self, host, at, values):
        await self.readings.put(f"{host}#{at}", {f"v:{name}": value for name, value in values.items()})

    async def newest(self, host, count):
        return [found async for found in self.readings.scan(prefix=f"{host}#", limit=count)]

    async def roll_up(self, worker):
        """What is new since the last time. An entry that comes twice does no harm: the hour is computed anew."""
        async for entry in self.rollup.entries(worker):
            if entry.op == "put":
                (host, at), name = entry.row.split("#"), entry.column[2:]
                hour = int(at) // HOUR
                [of] = await self.readings.aggregate(
                    {"n": f"COUNT v:{name}", "avg": f"AVG v:{name}", "max": f"MAX v:{name}"},
                    range=(f"[{host}#{(hour + 1) * HOUR - 1}", f"[{host}#{hour * HOUR}"))
                await self.hours.put(f"{host}#{hour}", {f"{what}:{name}": value for what, value in of.items()})

    async def chart(self, host, name):
        return [(int(key.split("#")[1]), row[f"n:{name}"], row[f"avg:{name}"], row[f"max:{name}"])
                async for key, row in self.hours.scan(prefix=f"{host}#", where=(f"n:{name}", "EXISTS"))]

    async def report(self, name):
        return await self.readings.aggregate({"median": ("QUANTILE", f"v:{name}", 1, 0.5), "max": f"MAX v:{name}"},
                                             by={"host": "PART host"}, sort="max DESC")

    async def close(self):
        await self.db.close()
