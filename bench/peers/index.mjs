// The peers, each with its best options; `ours` alone, with operators, and over the plain path.
//
// A peer opens `origin + path` and calls `take` with the length of each payload: of the string (`mode` is `text`) or of the bytes
// (`bytes`). Only `raw` does not parse frames: it calls `takeBytes`.
const ours = (title, args) => ({ title, file: './ours.mjs', modes: ['text', 'bytes'], args });

/** Every peer by name: the file that receives, the modes that it has, and the protocol of the sender. */
export const peers = {
  raw: { title: 'raw socket (the limit)', file: './raw.mjs', modes: ['bytes'] },
  ws: { title: 'ws', file: './ws.mjs', modes: ['text', 'bytes'] },
  rxjs: { title: 'rxjs/webSocket over ws', file: './rxjs.mjs', modes: ['text'] },
  undici: { title: 'undici WebSocket', file: './undici.mjs', modes: ['text'] },
  global: { title: 'global WebSocket', file: './global.mjs', modes: ['text'], isHere: () => 'WebSocket' in globalThis },
  partysocket: { title: 'partysocket over ws', file: './partysocket.mjs', modes: ['text'] },
  reconnecting: { title: 'reconnecting-websocket over ws', file: './reconnecting.mjs', modes: ['text'] },
  graphql: { title: 'graphql-ws over ws (own protocol)', file: './graphql.mjs', modes: ['text'], protocol: 'graphql' },
  centrifuge: {
    title: 'centrifuge over ws (own protocol)',
    file: './centrifuge.mjs',
    modes: ['text'],
    protocol: 'centrifuge',
  },
  ours: ours('ours', {}),
  ours3: ours('ours, 3 operators', { operators: 3 }),
  ours6: ours('ours, 6 operators', { operators: 6 }),
  oursPlain: ours('ours, plain path', { isPlain: true }),
};

/** Returns the titles of the peers that this Node version does not have. */
export const missingPeers = () =>
  Object.values(peers).flatMap(({ title, isHere }) => (isHere && !isHere() ? [title] : []));

/** Loads a peer's file and opens it. */
export const open = async (name, to) => {
  const { file, args } = peers[name];
  const peer = await import(file);
  return peer.open({ ...to, ...args });
};
