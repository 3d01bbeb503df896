// Types of the package `cellar`; what each call does is said in index.js and in cellar-commands(7).
export type Value = string | Buffer | Uint8Array | number | bigint | boolean;
export type Read = string | Buffer | number | bigint | boolean | null;
export type Key = string | Buffer;
export type Bound = string | Buffer | number | bigint;
export interface TypedValue { readonly value: Value; readonly type: string }
export interface PutValue { readonly value: Value | TypedValue; readonly options: PutOptions }
export type Item = Value | TypedValue | PutValue;
export type Row = Record<string, Read>;
export interface Cell { value: Read; ts: number | bigint; type: string; expires: number | bigint | null; labels: string[] }
export type Cells = Record<string, Cell[]>;
export type Condition = string | readonly [string, ...(Value)[]];
export type Conditions = Condition | readonly Condition[];
export type Step = readonly [string, ...(Item)[]];

export interface PutOptions { ts?: Bound; ttl?: string | number; expireAt?: Bound }
export interface CellOptions {
  columns?: string | Iterable<string>;
  columnPrefix?: [string, Bound];
  columnRange?: [string, Bound, Bound];
  time?: [Bound, Bound];
  versions?: number | 'ALL';
  perRow?: number;
  skip?: number;
  groups?: number;
  columnReverse?: boolean;
  filter?: string;
}
export interface RowOptions extends CellOptions {
  prefix?: Key | Iterable<Key>;
  range?: [Bound, Bound];
  rows?: Iterable<Key>;
  where?: Conditions;
  index?: string;
  eq?: Value | Iterable<Value>;
  between?: [Bound, Bound];
  fromValues?: Iterable<Value>;
  reverse?: boolean;
  each?: [number, number];
  sample?: number;
  noIndex?: boolean;
}
export interface ScanOptions extends RowOptions { limit?: number; page?: number; snapshot?: boolean }
export interface AggregateOptions extends RowOptions {
  by?: Record<string, string | readonly (string | number)[]>;
  sort?: string;
  limit?: [number, number];
}
export type Aggregate = Record<string, Read | (number | null)[]>;

export class CellarError extends Error {
  code: string;
}

export class Cellar {
  static connect(options?: string | object, more?: { wait?: number }): Promise<Cellar>;
  close(): Promise<void>;
  command(...words: Value[]): Promise<any>;
  table(name: string): Table;
  createTable(name: string, families: readonly string[] | Record<string, string>, more?: { key?: string }): Promise<Table>;
  tables(): Promise<string[]>;
  feed(name: string): Feed;
  createFeed(name: string, tables?: readonly string[],
    more?: { prefix?: Key; old?: boolean; expired?: boolean; keep?: string; slice?: [number, number] }): Promise<Feed>;
  createSnapshot(name: string, ...words: Value[]): Promise<void>;
  dropSnapshot(name: string): Promise<void>;
  transaction(body: (tx: { table(name: string): Table }) => Promise<unknown>, more?: { atomic?: boolean }): Promise<any[]>;
}

export class Table {
  readonly name: string;
  at(snapshot: string): Table;
  put(row: Key, cells: Record<string, Item>, more?: { when?: Conditions; nx?: boolean; xx?: boolean }): Promise<boolean>;
  appendRow(cells: Record<string, Item>): Promise<string>;
  get(row: Key, column: string, more?: { at?: Bound }): Promise<Read>;
  row(row: Key, options?: CellOptions): Promise<Row>;
  cells(row: Key, options?: CellOptions): Promise<Cells>;
  rows(keys: Iterable<Key>, options?: CellOptions): Promise<Row[]>;
  exists(row: Key, column?: string): Promise<boolean>;
  scan(options?: ScanOptions): AsyncGenerator<[Key, Row]>;
  scanAll(options?: ScanOptions): Promise<[Key, Row][]>;
  scanCells(options?: ScanOptions): AsyncGenerator<[Key, Cells]>;
  keys(options?: ScanOptions): AsyncGenerator<Key>;
  page(cursor?: string, options?: RowOptions & { count?: number }): Promise<{ cursor: string; rows: [Key, Row][] }>;
  count(options?: RowOptions & { of?: 'ROWS' | 'GROUPS' | 'COLUMNS' | 'CELLS' }): Promise<number | bigint>;
  aggregate(reduce: Record<string, string | readonly (string | number)[]>, options?: AggregateOptions): Promise<Aggregate[]>;
  mutate(row: Key, steps: readonly Step[],
    more?: { when?: Conditions; otherwise?: readonly Step[] }): Promise<{ held: boolean; results: any[] }>;
  update(steps: readonly Step[], selection?: RowOptions & { limit?: number }): Promise<number | bigint>;
  add(row: Key, inputs: Record<string, Value>, more?: { ts?: Bound; when?: Conditions }): Promise<boolean>;
  increment(row: Key, column: string, by?: number | bigint): Promise<number | bigint>;
  delete(row: Key, columns?: string | Iterable<string>,
    more?: Pick<CellOptions, 'columnPrefix' | 'columnRange' | 'time'> & { when?: Conditions }): Promise<number | bigint | null>;
  deleteRange(which: { prefix?: Key; range?: [Bound, Bound]; all?: boolean }): Promise<number | bigint>;
  createIndex(name: string, on: string | readonly string[],
    more?: { include?: string | readonly string[]; unique?: boolean }): Promise<void>;
  dropIndex(name: string): Promise<void>;
  info(): Promise<Record<string, any>>;
  drop(): Promise<void>;
}

export interface Entry {
  id: string;
  op: string;
  table: string;
  row: Key | null;
  column: string | null;
  ts: number | bigint | null;
  value: Read;
  old: Read;
  fields: Record<string, Buffer>;
}

export class Feed {
  readonly name: string;
  read(after?: string, options?: { count?: number }): Promise<Entry[]>;
  entries(after?: string, options?: { follow?: boolean; interval?: number }): AsyncGenerator<Entry>;
  createGroup(name: string, after?: string): Promise<Group>;
  group(name: string): Group;
  info(): Promise<Record<string, any>>;
  drop(): Promise<void>;
}

export class Group {
  readonly feed: string;
  readonly name: string;
  read(consumer: string, options?: { count?: number; pending?: boolean; claim?: number }): Promise<Entry[]>;
  entries(consumer: string, options?: { follow?: boolean; interval?: number; claim?: number }): AsyncGenerator<Entry>;
  ack(...entries: (Entry | string)[]): Promise<number | bigint>;
}

export function typed(value: Value, type: string): TypedValue;
export function withOptions(value: Value | TypedValue, options: PutOptions): PutValue;
