import type { ServerResponse } from 'node:http';
import { resetSocket } from './reset-socket.js';
import type { Issued, Seen } from './ten-rules/seen.js';

/** A ticket request that waits for its answer. */
export interface HeldTicket {
  readonly subscription: number;
  /** Whether its connection had served an earlier request: a client may then ask once more. */
  readonly isWarm: boolean;
  /** Answers 200 with a ticket that lives this long. */
  readonly issue: (lifetimeMs: number) => void;
  /** Answers otherwise. */
  readonly refuse: (status: number, headers?: Readonly<Record<string, string>>, body?: string) => void;
  /** Answers with bytes that need not be HTTP, then ends the connection. */
  readonly answerRaw: (bytes: string) => void;
  readonly reset: () => void;
  /** Resolves when it is answered, or its connection is gone. */
  readonly done: Promise<void>;
}

interface Held {
  readonly subscription: number;
  readonly n: number;
  /** The origin for `wss_url`. */
  readonly address: string;
  readonly response: ServerResponse;
  readonly see: (seen: Seen) => void;
}

const requestsOver = new WeakMap<object, number>();

/** Holds a ticket request. */
export const heldTicket = ({ subscription, n, address, response, see }: Held): HeldTicket => {
  const { socket } = response;
  const before = requestsOver.get(socket as object) ?? 0;
  requestsOver.set(socket as object, before + 1);

  let isDone = false;
  let finish: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const end = (told: { readonly ticket?: Issued; readonly retryAfterMs?: number } = {}) => {
    if (isDone) return;
    isDone = true;
    see({ what: 'ticket-answered', at: performance.now(), ...told });
    finish();
  };
  response.on('close', () => end()).on('error', () => undefined);

  return {
    subscription,
    isWarm: before > 0,
    issue: (lifetimeMs) => {
      // The address and the subprotocol differ from ticket to ticket: only what was returned may be used.
      const ticket = `planted-ticket-${subscription}-${n}`;
      const path = `/ws/${n}?session=${n}`;
      const subprotocol = `mmp.trade-batch.v${n}`;
      // On the whole second, as a `Date` header is.
      const now = Math.floor(Date.now() / 1_000) * 1_000;
      end({ ticket: { ticket, path, subprotocol } });
      response.writeHead(200, { 'content-type': 'application/json', date: new Date(now).toUTCString() }).end(
        JSON.stringify({
          ticket,
          token_type: 'Bearer',
          expires_at: new Date(now + lifetimeMs).toISOString(),
          wss_url: `${address}${path}`,
          feed: 'market',
          subprotocol,
        }),
      );
    },
    refuse: (status, headers = {}, body = '{"error":"refused"}') => {
      const asked = Number(headers['retry-after']);
      end(asked > 0 ? { retryAfterMs: asked * 1_000 } : {});
      response.writeHead(status, { date: new Date().toUTCString(), ...headers }).end(body);
    },
    answerRaw: (bytes) => {
      end();
      socket?.end(bytes);
    },
    reset: () => {
      end();
      if (socket) resetSocket(socket);
    },
    done,
  };
};
