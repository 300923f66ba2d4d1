// @ts-check
import { Ledger } from './ledger.mjs';

/** What came over the wire: the books, the windows, and when the connection was down. */
export class Truth {
  ledger = new Ledger();
  /** Frames that hold the needle, by the window in which they were read. @type {Map<number, number>} */
  kept = new Map();
  /** When the feed was open for the first time, in epoch ms. */
  openedAt = Infinity;
  isOpen = false;
  /** When the connection was down, in epoch ms, and what ended it. @type {{ from: number, to: number, code: string }[]} */
  outages = [];
  /** What ended each attempt, and how often. @type {Map<string, number>} */
  disconnects = new Map();

  /**
   * @param {string} needle
   * @param {number} windowMs
   */
  constructor(needle, windowMs) {
    this.needle = Buffer.from(needle);
    this.windowMs = windowMs;
  }

  /** @param {import('rx-trade-feed').FeedEvent} event */
  see(event) {
    this.ledger.see(event);
    if (event.type === 'frame') this.#count(event);
    if (event.type === 'opened') this.#open(event.at);
    if (event.type === 'disconnected') this.#close(event.failure);
  }

  /** @param {number} at */
  #open(at) {
    this.isOpen = true;
    this.openedAt = Math.min(this.openedAt, at);
    const outage = this.outages.at(-1);
    if (outage) outage.to = at;
  }

  /** @param {import('rx-trade-feed').TradeFeedError} failure */
  #close({ code, stage, endedAt }) {
    this.disconnects.set(code, (this.disconnects.get(code) ?? 0) + 1);
    if (stage !== 'stream') return;
    this.isOpen = false;
    this.outages.push({ from: endedAt, to: Infinity, code });
  }

  /** @param {import('rx-trade-feed').Frame} frame */
  #count({ data, receivedAt }) {
    if (!data.includes(this.needle)) return;
    const start = receivedAt - (receivedAt % this.windowMs);
    this.kept.set(start, (this.kept.get(start) ?? 0) + 1);
  }
}
