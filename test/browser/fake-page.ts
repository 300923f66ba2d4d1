/** Adds the events and the visibility of a page to the globals of Node, and counts the listeners. */
export class FakePage {
  readonly document = { visibilityState: 'visible' };
  readonly #target = new EventTarget();
  readonly #listeners: string[] = [];
  readonly #globals: Readonly<Record<string, unknown>> = {
    document: this.document,
    addEventListener: (type: string, listener: EventListener) => {
      this.#listeners.push(type);
      this.#target.addEventListener(type, listener);
    },
    removeEventListener: (type: string, listener: EventListener) => {
      this.#listeners.splice(this.#listeners.indexOf(type), 1);
      this.#target.removeEventListener(type, listener);
    },
  };

  constructor() {
    Object.assign(globalThis, this.#globals);
  }

  get listeners(): string[] {
    return [...this.#listeners];
  }

  dispatch(type: string): void {
    this.#target.dispatchEvent(new Event(type));
  }

  remove(): void {
    for (const name of Object.keys(this.#globals)) Reflect.deleteProperty(globalThis, name);
  }
}

type EventListener = (event: Event) => void;
