import { Controller, Get, HttpCode, NotFoundException, Param, Post, UseGuards } from '@nestjs/common';
import { FeedGuard } from '../feed.guard.js';
import { demoControls } from './demo-controls.js';
import { LocalService } from './local-service.js';

/** Lets a viewer do to the local service what can happen to a real one. It is there for a local service alone. */
@Controller('demo')
@UseGuards(FeedGuard)
export class DemoController {
  private readonly service: LocalService;

  constructor(service: LocalService) {
    this.service = service;
  }

  /** What can be done. */
  @Get()
  controls() {
    return demoControls(this.service.outageS).map(({ name, title, what }) => ({ name, title, what }));
  }

  /** Does it. */
  @Post(':name')
  @HttpCode(204)
  async cause(@Param('name') name: string): Promise<void> {
    const control = demoControls(this.service.outageS).find((each) => each.name === name);
    if (control === undefined) throw new NotFoundException('There is no such control.');
    await control.cause(this.service);
  }
}
