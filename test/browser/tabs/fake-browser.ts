import type { Locks } from '../../../src/browser/page-globals.js';

type Options = Parameters<Locks['request']>[1];
interface Request {
  readonly name: string;
  readonly clientId: string;
  readonly grant: () => void;
  readonly reject: (error: unknown) => void;
}

const abortError = () => new DOMException('The request was aborted.', 'AbortError');

/**
 * Web Locks in one process, as specified: exclusive, in request order, with abort and steal. Each request is a page.
 */
export class FakeLocks implements Locks {
  /** How often a lock was stolen. */
  stolen = 0;
  readonly #held = new Map<string, Request>();
  #waiting: Request[] = [];
  #requests = 0;

  request(name: string, options: Options, callback: () => Promise<void> | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const request: Request = {
        name,
        clientId: `page ${(this.#requests += 1)}`,
        grant: () => {
          this.#held.set(name, request);
          // In a separate task, as in a browser.
          setImmediate(() => {
            if (this.#held.get(name) !== request) return;
            void Promise.resolve(callback()).then((value) => {
              if (this.#held.get(name) === request) this.#held.delete(name);
              this.#next(name);
              resolve(value);
            }, reject);
          });
        },
        reject,
      };
      if ('steal' in options) {
        this.stolen += this.#held.has(name) ? 1 : 0;
        this.#held.get(name)?.reject(abortError());
        request.grant();
        return;
      }
      options.signal.addEventListener('abort', () => {
        if (!this.#waiting.includes(request)) return;
        this.#waiting = this.#waiting.filter((each) => each !== request);
        reject(abortError());
      });
      this.#waiting.push(request);
      this.#next(name);
    });
  }

  query(): Promise<{ readonly held: readonly { readonly name: string; readonly clientId: string }[] }> {
    const held = [...this.#held.values()];
    // In a separate task, as in a browser.
    return new Promise((resolve) => setImmediate(() => resolve({ held })));
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get held(): number {
    return this.#held.size;
  }

  #next(name: string): void {
    if (this.#held.has(name)) return;
    const next = this.#waiting.find((each) => each.name === name);
    this.#waiting = this.#waiting.filter((each) => each !== next);
    next?.grant();
  }
}

/** Adds the globals of a secure page to Node. */
export class FakeBrowser {
  readonly locks: Locks;
  readonly document = { visibilityState: 'visible' };
  /** The types of events that the page has listeners for. */
  readonly listeners: string[] = [];
  readonly #page = new EventTarget();
  readonly #before = new Map<string, PropertyDescriptor | undefined>();

  constructor(locks: Locks = new FakeLocks()) {
    this.locks = locks;
    const globals = {
      isSecureContext: true,
      navigator: { locks },
      document: this.document,
      addEventListener: (...args: Parameters<EventTarget['addEventListener']>) => {
        this.listeners.push(args[0]);
        this.#page.addEventListener(...args);
      },
      removeEventListener: (...args: Parameters<EventTarget['removeEventListener']>) => {
        this.listeners.splice(this.listeners.indexOf(args[0]), 1);
        this.#page.removeEventListener(...args);
      },
    };
    for (const [name, value] of Object.entries(globals)) this.set(name, value);
  }

  /** Changes one of the globals. */
  set(name: string, value: unknown): void {
    if (!this.#before.has(name)) this.#before.set(name, Object.getOwnPropertyDescriptor(globalThis, name));
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }

  /** Fires an event of the page. */
  fire(type: string): void {
    this.#page.dispatchEvent(new Event(type));
  }

  remove(): void {
    for (const [name, descriptor] of this.#before) {
      Reflect.deleteProperty(globalThis, name);
      if (descriptor !== undefined) Object.defineProperty(globalThis, name, descriptor);
    }
  }
}
