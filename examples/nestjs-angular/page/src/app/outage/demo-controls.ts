import { Injectable, signal } from '@angular/core';

/** An event that a viewer can cause at the local service. */
export interface DemoControl {
  readonly name: string;
  readonly title: string;
  readonly what: string;
}

/** Causes events at the local service of the demo, if there is one. */
@Injectable({ providedIn: 'root' })
export class DemoControls {
  private readonly known = signal<readonly DemoControl[]>([]);
  private readonly result = signal('');
  private readonly running = signal<string | undefined>(undefined);

  /** The available events; empty with a real service. */
  readonly list = this.known.asReadonly();
  /** The result of the last event. */
  readonly answer = this.result.asReadonly();
  /** The name of the running event. */
  readonly busy = this.running.asReadonly();

  constructor() {
    void this.load();
  }

  /** Causes an event. */
  async cause(control: DemoControl): Promise<void> {
    this.running.set(control.name);
    try {
      const response = await fetch(`/demo/${control.name}`, { method: 'POST' });
      this.result.set(
        response.ok ? `Done: ${control.title.toLowerCase()}.` : `That did not work: HTTP ${response.status}.`,
      );
    } catch {
      this.result.set('That did not work: the server of this page does not answer.');
    }
    this.running.set(undefined);
  }

  private async load(): Promise<void> {
    try {
      const response = await fetch('/demo');
      if (response.ok) this.known.set((await response.json()) as readonly DemoControl[]);
    } catch {
      // Without the list the panel is hidden. The status shows that the server doesn't answer.
    }
  }
}
