import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';

/** A JSON-RPC server that plays an Ethereum node. */
export interface ScriptedNode extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The texts of the requests. */
  readonly requests: string[];
  /** The connections that are open. */
  readonly sockets: ReadonlySet<WebSocket>;
  /** Sends a pending transaction to all subscribers: an object, or a hash. */
  send(transaction: unknown): void;
  /** Sends a text to all subscribers. */
  sendText(text: string): void;
}

/** The answer to a subscription: its id, or an error. */
export type Answer = { readonly result: string } | { readonly error: { readonly message: string } };

const accepted: Answer = { result: '0xsubscription' };

/** Starts a node that gives the same answer to every subscription. */
export const startNode = async (answer: Answer = accepted, options: ServerOptions = {}): Promise<ScriptedNode> => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, ...options });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const requests: string[] = [];
  server.on('connection', (socket) => {
    socket.on('message', (data: Buffer) => {
      requests.push(data.toString());
      socket.send(
        JSON.stringify({ jsonrpc: '2.0', id: (JSON.parse(data.toString()) as { id: number }).id, ...answer }),
      );
    });
  });
  const sendText = (text: string): void => {
    for (const socket of server.clients) socket.send(text);
  };
  return {
    url: `ws://127.0.0.1:${port}`,
    port,
    requests,
    sockets: server.clients,
    sendText,
    send: (result) => {
      const params = { subscription: '0xsubscription', result };
      sendText(JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params }));
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, 'close');
    },
  };
};
