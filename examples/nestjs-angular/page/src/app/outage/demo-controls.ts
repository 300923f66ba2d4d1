import { Injectable, signal } from '@angular/core';

/** Something that can be done to the local service. */
export interface DemoControl {
  readonly name: string;
  readonly title: string;
  readonly what: string;
}

/** Causes events at the local service of the demo, if there is one. */
@Injectable({ providedIn: 'root' })
export class DemoControls {
  private readonly known = signal<readonly DemoControl[]>([]);
  private readonly told = signal('');
  private readonly going = signal<string | undefined>(undefined);

  /** What can be done; none where the feed is a real one. */
  readonly list = this.known.asReadonly();
  /** What was done last, in words. */
  readonly answer = this.told.asReadonly();
  /** Which one is being done. */
  readonly busy = this.going.asReadonly();

  constructor() {
    void this.load();
  }

  /** Does it. */
  async cause(control: DemoControl): Promise<void> {
    this.going.set(control.name);
    try {
      const response = await fetch(`/demo/${control.name}`, { method: 'POST' });
      this.told.set(
        response.ok ? `Done: ${control.title.toLowerCase()}.` : `That did not work: HTTP ${response.status}.`,
      );
    } catch {
      this.told.set('That did not work: the server of this page does not answer.');
    }
    this.going.set(undefined);
  }

  private async load(): Promise<void> {
    try {
      const response = await fetch('/demo');
      if (response.ok) this.known.set((await response.json()) as readonly DemoControl[]);
    } catch {
      // Without the list there is no panel; the page says by itself that the server does not answer.
    }
  }
}
