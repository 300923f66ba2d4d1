import { FrameAccount } from '../lib/frame-account.mjs';

/** What the operators must report, counted from the events without them: frames, windows and outages. */
export class ExpectedValues {
  // A fault can come before the first frame. A gap then reports the frames from 1 on.
  account = new FrameAccount(1);
  /** Frames that contain the needle, by the start of the window in which they were received. */
  perWindow = new Map();
  /** When the first frame arrived, in epoch ms. A connection without a frame isn't complete for certain. */
  beganAt = Infinity;
  isOpen = false;
  /** The times without a connection, in epoch ms, the first frame after it, and the code: `{ from, to, frameAt, code }`. */
  outages = [];
  /** How often each failure code ended an attempt. */
  disconnects = new Map();

  constructor(needle, windowMs) {
    this.needle = Buffer.from(needle);
    this.windowMs = windowMs;
  }

  /** @param event - of `tradeFeedEvents$` */
  event(event) {
    this.account.event(event);
    if (event.type === 'frame') this.#count(event);
    if (event.type === 'opened') this.#open(event.at);
    if (event.type === 'disconnected') this.#close(event.failure);
  }

  #open(at) {
    this.isOpen = true;
    const outage = this.outages.at(-1);
    if (outage) outage.to = at;
  }

  #close({ code, stage, endedAt }) {
    this.disconnects.set(code, (this.disconnects.get(code) ?? 0) + 1);
    if (stage !== 'stream') return;
    this.isOpen = false;
    this.outages.push({ from: endedAt, to: Infinity, frameAt: Infinity, code });
  }

  #count({ data, receivedAt }) {
    this.beganAt = Math.min(this.beganAt, receivedAt);
    const outage = this.outages.at(-1);
    if (outage) outage.frameAt = Math.min(outage.frameAt, receivedAt);
    if (!data.includes(this.needle)) return;
    const start = receivedAt - (receivedAt % this.windowMs);
    this.perWindow.set(start, (this.perWindow.get(start) ?? 0) + 1);
  }
}
