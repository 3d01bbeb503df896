// Which node is asked, and what is sent again.
//
// Of one node only what it says itself is followed: REDIRECT, and READONLY with the leader's address. Of several
// ('redis://a:6479,b:6479') the one that leads is asked, found by ROLE; so all reads see all writes of this client,
// whoever leads. What has surely not been done is tried again for `wait` milliseconds: CLUSTERDOWN, TRYAGAIN, a node
// that cannot be reached. Behind a lost connection a read is, too; a write may have been done, and is not.
'use strict';

const redis = require('redis');
const { CellarError, text } = require('./values.js');

const NOT_DONE = ['CLUSTERDOWN', 'TRYAGAIN', 'LOADING', 'MASTERDOWN', 'REDIRECT'];
const CONNECT_MS_MAX = 1000;  // where there is another node to ask
const PAUSE_MS_MAX = 200;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const left = (client) => (client.close ? client.close() : client.quit()).catch(() => {});

// The address of the node that the error says to ask instead.
function leaderNamed(error) {
  if (!(error instanceof CellarError)) return null;
  const found = error.code === 'REDIRECT' ? /^REDIRECT (\S+:\d+)$/.exec(error.message) :
    /(?:leader|master) is (\S+:\d+)$/.exec(error.message);
  return found && found[1];
}

// Whether it may be done at another time, or by another node.
const isSurelyNotDone = (error) => error instanceof CellarError && (NOT_DONE.includes(error.code) ||
  (error.code === 'READONLY' && leaderNamed(error) !== null));

class Nodes {
  // `options`: node-redis', of which `url` may name several nodes.
  constructor(options, wait) {
    this._options = options;
    const [, before = '', hosts = '', behind = ''] = /^(\w+:\/\/(?:.*@)?)([^/?]*)(.*)$/.exec(options.url ?? '') ?? [];
    this._url = (node) => before + node + behind;
    this._nodes = hosts.split(',');
    this._at = 0;  // of _nodes
    this._named = null;  // by another node: asked in place of _nodes[_at]
    this._isOne = this._nodes.length === 1;  // nobody to choose from
    this._wait = wait;
    this._opened = null;  // a promise of the connection
    this._turn = 0;  // counts nodes that were turned from
    this._isClosed = false;
  }

  async close() {
    this._isClosed = true;
    if (this._opened) await this._opened.then(left, () => {});
  }

  // A connection that is never made anew by itself: behind a lost MULTI nothing else is sent, and what was not sent
  // does not wait for a node that is gone. Of several nodes it must be the one that leads.
  async _open() {
    const node = this._named ?? this._nodes[this._at];
    const socket = { ...(this._isOne ? {} : { connectTimeout: CONNECT_MS_MAX }), ...this._options.socket,
      reconnectStrategy: false };
    const given = { ...this._options, socket };
    const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(node) ?? [];
    if (this._options.url !== undefined) given.url = this._url(host?.includes(':') ? `[${host}]:${port}` : node);
    else if (this._named) given.socket = { ...socket, path: undefined, host, port: Number(port) };
    const client = redis.createClient(given);
    client.on('error', () => {});  // calls fail by themselves
    await client.connect();
    try {
      await client.sendCommand(['CLIENT', 'CAPA', 'redirect']).catch(() => {});  // it may not, or nobody knows that
      if (!this._isOne) await this._mustLead(client);
    } catch (error) {
      await left(client);
      throw error;
    }
    return client;
  }

  async _mustLead(client) {
    let role;
    try {
      role = await Nodes._send(client, ['ROLE']);
    } catch (error) {
      const told = CellarError.of(error);
      if (!(told instanceof CellarError) || isSurelyNotDone(told)) throw told;
      return;  // who may not ask takes what there is
    }
    if (text(role[0]) !== 'slave') return;
    throw new CellarError('CLUSTERDOWN', text(role[1]) ? `the leader is ${text(role[1])}:${text(role[2])}` : 'no leader');
  }

  // The connection to the node to ask now.
  async _client() {
    while (!this._isClosed) {
      const opened = this._opened ??= this._open();
      try {
        const client = await opened;
        if (client.isReady) return client;
      } catch (error) {
        if (this._opened === opened) this._opened = null;
        throw error;
      }
      if (this._opened === opened) this._opened = null;
    }
    throw new Error('the client is closed');
  }

  // The node of that turn was of no use: the one that it named is asked, or the next one, unless another call has
  // seen to that.
  _turnFrom(turn, leader) {
    if (turn !== this._turn || (!leader && this._isOne && !this._named)) return;
    ++this._turn;
    if (!leader) this._at = (this._at + 1) % this._nodes.length;
    this._named = leader;
    if (this._opened) this._opened.then(left, () => {});
    this._opened = null;
  }

  // Bytes as Buffers, integers as exact text where node-redis can (5 and newer).
  static _send(client, words) {
    if (!client.withTypeMapping) return client.sendCommand(words, { returnBuffers: true });
    const types = redis.RESP_TYPES;
    return client.sendCommand(words, { typeMapping: {
      [types.BLOB_STRING]: Buffer, [types.NUMBER]: String, [types.BIG_NUMBER]: String, [types.DOUBLE]: String,
      [types.MAP]: Array } });
  }

  // Sends commands together; their replies, errors among them. Again, while the last one is surely not done: of
  // several it must be what does them. No commands: a connection is there.
  async perform(commands, isRead) {
    const deadline = Date.now() + this._wait;
    for (let pause = 10; ; pause = Math.min(2 * pause, PAUSE_MS_MAX)) {
      const turn = this._turn;
      let told;
      try {
        const client = await this._client();
        const replies = (await Promise.allSettled(commands.map((words) => Nodes._send(client, words)))).map(  // in one turn:
          (each) => (each.status === 'fulfilled' ? each.value : CellarError.of(each.reason)));  // nothing comes between
        const last = replies.at(-1);
        told = replies.find((each) => each instanceof Error);
        if (last instanceof Error && !(last instanceof CellarError)) {  // the connection is lost
          this._turnFrom(turn, null);
          if (!isRead) return replies;
        } else if (!(last instanceof Error) || !isSurelyNotDone(told)) {
          return replies;
        }
      } catch (error) {  // no connection, so nothing was sent
        told = CellarError.of(error);
        if (this._isClosed || (told instanceof CellarError && !isSurelyNotDone(told))) throw told;
      }
      if (Date.now() > deadline) throw told;
      if (told.code !== 'TRYAGAIN') this._turnFrom(turn, leaderNamed(told));  // that is the right node, only too early
      await sleep(pause);
    }
  }
}

module.exports = { Nodes };
