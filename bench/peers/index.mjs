// The peers, each with its best options; `ours` alone, with operators, and over the plain path.
//
// A peer opens an address and calls `take` with the length of each payload: of the string (`mode` is `text`), of the bytes (`bytes`), or of the
// string of a frame that it held before (`held`). Each loads its packages when it is opened, so that a process has only those of one peer.
import { installedBun } from '../../scripts/install.mjs';
import { hold } from '../support/hold.mjs';

/** Opens a socket with the interface of a browser. */
const listening =
  (socketTo) =>
  async ({ url, take }) => {
    const socket = await socketTo(url);
    socket.addEventListener('message', ({ data }) => take(data.length));
  };

const wsReaders = {
  text: (take) => (data) => take(data.toString().length),
  bytes: (take) => (data) => take(data.length),
  held: (take, size) => hold(size, wsReaders.text(take)),
};
const ws = async ({ url, mode, size, take }) => {
  const { WebSocket } = await import('ws');
  new WebSocket(url, { perMessageDeflate: false }).on('message', wsReaders[mode](take, size));
};

/** With a deserializer that doesn't parse JSON, and `ws` without compression. */
const rxjs = async ({ url, take }) => {
  const { webSocket } = await import('rxjs/webSocket');
  const { WebSocket } = await import('ws');
  class WebSocketCtor extends WebSocket {
    constructor(address, protocols) {
      super(address, protocols, { perMessageDeflate: false });
    }
  }
  webSocket({ url, WebSocketCtor, deserializer: ({ data }) => data }).subscribe((text) => take(text.length));
};

const ours = (title, options) => ({
  title,
  open: async (to) => (await import('./ours.mjs')).open({ ...to, ...options }),
});

/** Every peer by name: the function that opens it, and the program that runs it, if it is not this Node. */
export const peers = {
  ws: { title: 'ws', open: ws },
  rxjs: { title: 'rxjs/webSocket over ws', open: rxjs },
  undici: { title: 'undici WebSocket', open: listening(async (url) => new (await import('undici')).WebSocket(url)) },
  bun: { title: 'Bun (its own WebSocket)', open: listening((url) => new WebSocket(url)), program: installedBun() },
  ours: ours('ours', {}),
  ours6: ours('ours, 6 operators', { operators: 6 }),
  oursPlain: ours('ours, plain path', { isPlain: true }),
};

/** Says how to measure what can't be measured here, as a fact of a report. */
export const missingPeers = peers.bun.program === undefined && {
  'not measured': 'Bun, which `node scripts/install.mjs bun` installs',
};
