import { computed, effect, inject, Injectable, signal, untracked } from '@angular/core';
import { Monitor } from '../feed/monitor';
import { remember, remembered } from './remembered';

/** A reconnect that is shorter than this makes no sound, in ms. */
const shortMs = 500;

/** A tone: its pitch in Hz, and its start in seconds. */
type Tone = readonly [pitch: number, at: number];
const tones: Readonly<Record<string, readonly Tone[]>> = {
  stopped: [
    [440, 0],
    [330, 0.22],
    [220, 0.44],
  ],
  reconnecting: [[440, 0]],
};
const toneS = 0.18;

/** Plays a sound when the feed stops or reconnects. It is off until the user turns it on in this browser. */
@Injectable({ providedIn: 'root' })
export class Sound {
  private readonly on = signal(remembered('sound') === 'on');
  private readonly context = signal<AudioContext | undefined>(undefined);
  private readonly isAllowed = signal(true);

  readonly isOn = this.on.asReadonly();
  /** Whether the browser waits for a click or a key before it allows sound. */
  readonly isBlocked = computed(() => this.on() && !this.isAllowed());

  constructor() {
    const { state } = inject(Monitor);
    effect((onCleanup) => {
      const sound = tones[state()];
      if (sound === undefined) return;
      const timer = setTimeout(() => untracked(() => this.play(sound)), state() === 'stopped' ? 0 : shortMs);
      onCleanup(() => clearTimeout(timer));
    });
    if (this.on()) this.prepare();
  }

  /** Turns the sound on or off. */
  toggle(): void {
    this.on.update((isOn) => !isOn);
    remember('sound', this.on() ? 'on' : 'off');
    if (!this.on()) return;
    this.prepare();
    // Plays an example.
    this.play([[660, 0]]);
  }

  private prepare(): void {
    if (this.context()) return;
    const context = new AudioContext();
    this.context.set(context);
    const follow = () => this.isAllowed.set(context.state === 'running');
    follow();
    context.addEventListener('statechange', follow);
    const resume = () => void context.resume();
    for (const touch of ['pointerdown', 'keydown']) document.addEventListener(touch, resume);
  }

  private play(sound: readonly Tone[]): void {
    const context = this.context();
    if (!this.on() || context === undefined) return;
    for (const [pitch, at] of sound) {
      const tone = new OscillatorNode(context, { type: 'sine', frequency: pitch });
      const volume = new GainNode(context, { gain: 0 });
      const from = context.currentTime + at;
      // An abrupt start or end would click.
      volume.gain.setTargetAtTime(0.2, from, 0.01);
      volume.gain.setTargetAtTime(0, from + toneS - 0.05, 0.02);
      tone.connect(volume).connect(context.destination);
      tone.start(from);
      tone.stop(from + toneS);
    }
  }
}
