//! Checks a scenario once, so that the engine need not: every index inside its list, every number in its range.

use crate::error::SimError;
use crate::scenario::{
    Activation, Event, Load, Model, Policy, Process, RandomTime, Route, RouteKind, Scenario, Target, Task, Variation,
};
use crate::windows;

impl Scenario {
    /// Checks every index and number.
    ///
    /// # Errors
    ///
    /// The first wrong value.
    pub fn check(&self) -> Result<(), SimError> {
        let (ports, tasks, pools) = (self.model.ports.len(), self.model.tasks.len(), self.model.pools.len());
        for (i, port) in self.model.ports.iter().enumerate() {
            positive(format!("ports[{i}].link_bps"), port.link_bps)?;
            count(format!("ports[{i}].tx_ring"), port.tx_ring)?;
            if let Some(entry) = port.entry {
                index(format!("ports[{i}].entry"), entry, tasks)?;
            }
        }
        for (i, pool) in self.model.pools.iter().enumerate() {
            count(format!("pools[{i}].speed (number of units)"), pool.speed.len())?;
            for &speed in &pool.speed {
                positive(format!("pools[{i}].speed"), speed)?;
            }
            for &factor in &pool.contention {
                positive(format!("pools[{i}].contention"), factor)?;
            }
            not_negative(format!("pools[{i}].switch_ps"), pool.switch_ps)?;
            not_negative(format!("pools[{i}].migration_ps"), pool.migration_ps)?;
            if let Some(quantum) = pool.policy.quantum_ps() {
                positive(format!("pools[{i}].policy quantum"), quantum)?;
            }
            if let Policy::Linux { wakeup_granularity_ps, .. } = pool.policy {
                not_negative(format!("pools[{i}].policy.wakeup_granularity_ps"), wakeup_granularity_ps)?;
            }
            for (n, state) in pool.sleep.iter().enumerate() {
                not_negative(format!("pools[{i}].sleep[{n}].after_ps"), state.after_ps)?;
                not_negative(format!("pools[{i}].sleep[{n}].exit_ps"), state.exit_ps)?;
                if n > 0 && state.after_ps <= pool.sleep[n - 1].after_ps {
                    return Err(SimError::Number {
                        place: format!("pools[{i}].sleep[{n}].after_ps"),
                        got: state.after_ps,
                        allowed: "sleep states in rising order of after_ps",
                    });
                }
            }
            if let Some(interruptions) = &pool.interruptions {
                positive(format!("pools[{i}].interruptions.rate_hz"), interruptions.rate_hz)?;
                random_time(&format!("pools[{i}].interruptions.duration"), &interruptions.duration)?;
            }
        }
        for (i, task) in self.model.tasks.iter().enumerate() {
            self.check_task(i, task, ports, tasks, pools)?;
        }
        for (i, event) in self.run.events.iter().enumerate() {
            self.check_event(i, event)?;
        }
        self.load.check(&self.model)?;
        if self.run.duration_ps == 0 {
            return Err(SimError::Number { place: "run.duration".into(), got: 0.0, allowed: "more than 0 s" });
        }
        Ok(())
    }

    fn check_event(&self, i: usize, event: &Event) -> Result<(), SimError> {
        let (ports, tasks) = (self.model.ports.len(), self.model.tasks.len());
        let place = |field: &str| format!("run.events[{i}].{field}");
        index(place("task"), event.task(), tasks)?;
        for &copy in event.copies() {
            index(place("copies"), copy, tasks)?;
            if windows::carried(&self.model.tasks[copy]).is_some() {
                return Err(SimError::Number { place: place("copies"), got: copy as f64, allowed: NO_DOOR });
            }
        }
        let within = |at_ps: f64| at_ps >= 0.0 && at_ps < self.run.duration_ps as f64;
        match event {
            Event::Outage { from_ps, until_ps, .. } => {
                if !within(*from_ps) {
                    return Err(SimError::Number { place: place("from_ps"), got: *from_ps, allowed: WITHIN });
                }
                match until_ps {
                    Some(until_ps) if !(*until_ps > *from_ps && until_ps.is_finite()) => Err(SimError::Number {
                        place: place("until_ps"),
                        got: *until_ps,
                        allowed: "later than from_ps",
                    }),
                    _ => Ok(()),
                }
            }
            Event::Reroute { at_ps, route, .. } => {
                if !within(*at_ps) {
                    return Err(SimError::Number { place: place("at_ps"), got: *at_ps, allowed: WITHIN });
                }
                check_route(&place("route"), route, ports, tasks)
            }
        }
    }

    fn check_task(&self, i: usize, task: &Task, ports: usize, tasks: usize, pools: usize) -> Result<(), SimError> {
        let place = |field: &str| format!("tasks[{i}].{field}");
        for value in [task.per_frame_ps, task.per_byte_ps, task.per_batch_ps] {
            not_negative(place("service"), value)?;
        }
        if task.queue == 0 && (task.activation != Activation::Dedicated || task.batch > 1 || task.holds_back) {
            let allowed = "at least 1, or a dedicated task unit that serves frames one by one";
            return Err(SimError::Number { place: place("queue"), got: 0.0, allowed });
        }
        count(place("batch"), task.batch)?;
        count(place("parallel"), task.parallel.unwrap_or(1))?;
        if task.parallel.is_none() && (task.needs.is_empty() || task.activation != Activation::Dedicated) {
            return Err(SimError::Number {
                place: place("parallel"),
                got: 0.0,
                allowed: "a number; only dedicated task units that need a pool can leave it open",
            });
        }
        positive(place("weight"), task.weight)?;
        for need in &task.needs {
            index(place("needs.pool"), need.pool, pools)?;
            count(place("needs.units"), need.units)?;
            let units = self.model.pools[need.pool].speed.len();
            if need.units > units {
                return Err(SimError::Number {
                    place: place("needs.units"),
                    got: need.units as f64,
                    allowed: "at most the units of the pool",
                });
            }
            if let Some(until) = need.until {
                index(place("needs.until"), until, tasks)?;
            }
        }
        if let Some(first) = task.needs.first() {
            for &unit in &task.pin {
                index(place("pin"), unit, self.model.pools[first.pool].speed.len())?;
            }
        }
        check_route(&place("route"), &task.route, ports, tasks)?;
        for &copy in &task.copies {
            index(place("copies"), copy, tasks)?;
        }
        if let Activation::Interrupt { budget, cost_ps, moderation_ps, wakeup, linger_ps, .. } = &task.activation {
            count(place("activation.budget"), *budget)?;
            not_negative(place("activation.cost_ps"), *cost_ps)?;
            not_negative(place("activation.moderation_ps"), *moderation_ps)?;
            not_negative(place("activation.linger_ps"), *linger_ps)?;
            if let Some(wakeup) = wakeup {
                random_time(&place("activation.wakeup"), wakeup)?;
            }
        }
        if let Activation::Thread { budget, cost_ps, wakeup, .. } = &task.activation {
            count(place("activation.budget"), *budget)?;
            not_negative(place("activation.cost_ps"), *cost_ps)?;
            if let Some(wakeup) = wakeup {
                random_time(&place("activation.wakeup"), wakeup)?;
            }
        }
        self.check_thread(i, task)?;
        windows::check(&self.model, i, task)?;
        variation(&place("variation"), task.variation)
    }

    /// Task units of one thread ask for their units as one; only threads and pollers can wait for room.
    fn check_thread(&self, i: usize, task: &Task) -> Result<(), SimError> {
        let refuse = |field: &str, got: f64, allowed: &'static str| {
            Err(SimError::Number { place: format!("tasks[{i}].{field}"), got, allowed })
        };
        let is_thread = matches!(task.activation, Activation::Thread { .. });
        if (is_thread || task.thread.is_some() || task.holds_back) && task.parallel != Some(1) {
            return refuse("parallel", task.parallel.unwrap_or(0) as f64, "1 for a thread");
        }
        if (task.thread.is_some() || task.holds_back) && !is_thread && task.activation != Activation::Polling {
            return refuse(
                "activation",
                f64::NAN,
                "thread or polling, where several queues share a thread or are held back",
            );
        }
        let by_turn = matches!(task.route.kind, RouteKind::RoundRobin | RouteKind::Random) && task.route.to.len() > 1;
        if task.holds_back && by_turn {
            return refuse("route.kind", f64::NAN, "a route that the flow decides, where frames are held back");
        }
        let Some(first) = task.thread.and_then(|_| self.model.tasks.iter().find(|other| other.thread == task.thread))
        else {
            return Ok(());
        };
        let like = first.needs == task.needs
            && first.pin == task.pin
            && first.priority == task.priority
            && first.weight == task.weight
            && std::mem::discriminant(&first.activation) == std::mem::discriminant(&task.activation);
        if like {
            return Ok(());
        }
        let allowed = "a thread whose task units agree in needs, pin, priority, weight and the kind of activation";
        refuse("thread", task.thread.unwrap_or(0) as f64, allowed)
    }
}

fn check_route(place: &str, route: &Route, ports: usize, tasks: usize) -> Result<(), SimError> {
    for target in &route.to {
        match *target {
            Target::Task(task) => index(format!("{place}.to"), task, tasks)?,
            Target::Port(port) => index(format!("{place}.to"), port, ports)?,
        }
    }
    let wrong = |field: &str, got: usize, allowed| {
        Err(SimError::Number { place: format!("{place}.{field}"), got: got as f64, allowed })
    };
    if route.kind == RouteKind::ByEgress && route.to.len() != ports {
        return wrong("to", route.to.len(), "one target per port");
    }
    if route.kind == RouteKind::Random && route.weights.len() != route.to.len() {
        return wrong("weights", route.weights.len(), "one weight per target");
    }
    Ok(())
}

fn variation(place: &str, variation: Variation) -> Result<(), SimError> {
    let scv = match variation {
        Variation::Deterministic | Variation::Exponential => 1.0,
        Variation::Gamma { scv } | Variation::Lognormal { scv } => scv,
        Variation::Hyperexponential { scv } if scv >= 1.0 => scv,
        Variation::Uniform { scv } if scv <= 1.0 / 3.0 => scv,
        Variation::Hyperexponential { scv } | Variation::Uniform { scv } => {
            return Err(SimError::Number {
                place: format!("{place}.scv"),
                got: scv,
                allowed: "hyperexponential needs scv >= 1, uniform scv <= 1/3",
            });
        }
    };
    positive(format!("{place}.scv"), scv)
}

fn random_time(place: &str, time: &RandomTime) -> Result<(), SimError> {
    match time {
        RandomTime::Mean { mean_ps, variation: law } => {
            not_negative(format!("{place}.mean_ps"), *mean_ps)?;
            variation(place, *law)
        }
        RandomTime::Quantiles { quantiles_ps } => {
            count(format!("{place}.quantiles_ps"), quantiles_ps.len())?;
            for &quantile in quantiles_ps {
                not_negative(format!("{place}.quantiles_ps"), quantile)?;
            }
            match quantiles_ps.windows(2).find(|pair| pair[0] > pair[1]) {
                None => Ok(()),
                Some(pair) => Err(SimError::Number {
                    place: format!("{place}.quantiles_ps"),
                    got: pair[1],
                    allowed: "quantiles in rising order",
                }),
            }
        }
    }
}

impl Load {
    fn check(&self, model: &Model) -> Result<(), SimError> {
        count("load.sources".into(), self.sources.len())?;
        count("load.sizes".into(), self.sizes.len())?;
        for &bytes in &self.sizes {
            positive("load.sizes".into(), f64::from(bytes))?;
        }
        for (i, flow) in self.flows.iter().enumerate() {
            index(format!("load.flows[{i}].egress"), flow.egress, model.ports.len())?;
            positive(format!("load.flows[{i}].weight"), flow.weight)?;
        }
        let mut owner = vec![None; self.flows.len()];
        for (i, source) in self.sources.iter().enumerate() {
            index(format!("load.sources[{i}].port"), source.port, model.ports.len())?;
            if model.ports[source.port].entry.is_none() {
                return Err(SimError::Number {
                    place: format!("load.sources[{i}].port"),
                    got: source.port as f64,
                    allowed: "a port with an entry task unit",
                });
            }
            positive(format!("load.sources[{i}].rate_pps"), source.rate_pps)?;
            count(format!("load.sources[{i}].flows"), source.flows.len())?;
            for &flow in &source.flows {
                index(format!("load.sources[{i}].flows"), flow as usize, self.flows.len())?;
                if owner[flow as usize].replace(i).is_some() {
                    return Err(SimError::Number {
                        place: format!("load.sources[{i}].flows"),
                        got: f64::from(flow),
                        allowed: "each flow once, at one source",
                    });
                }
            }
            let mut before_ps = 0.0;
            for step in &source.steps {
                positive(format!("load.sources[{i}].steps.rate_pps"), step.rate_pps)?;
                if !(step.at_ps.is_finite() && step.at_ps > before_ps) {
                    return Err(SimError::Number {
                        place: format!("load.sources[{i}].steps.at_ps"),
                        got: step.at_ps,
                        allowed: "instants after the start, in order of time",
                    });
                }
                before_ps = step.at_ps;
            }
            match &source.process {
                Process::OnOff { burst_frames, peak_ratio } => {
                    if !(*peak_ratio > 1.0 && peak_ratio.is_finite() && *burst_frames >= 1.0) {
                        return Err(SimError::Number {
                            place: format!("load.sources[{i}].process"),
                            got: *peak_ratio,
                            allowed: "burst_frames >= 1 and peak_ratio > 1",
                        });
                    }
                }
                Process::Bursts { burst_frames } => {
                    let burst_frames = usize::try_from(*burst_frames).unwrap_or(usize::MAX);
                    count(format!("load.sources[{i}].process.burst_frames"), burst_frames)?;
                }
                Process::Trace { time_ps, bytes, flow } => {
                    if time_ps.len() != bytes.len() || time_ps.len() != flow.len() || !time_ps.is_sorted() {
                        return Err(SimError::Number {
                            place: format!("load.sources[{i}].process"),
                            got: time_ps.len() as f64,
                            allowed: "as many sizes and flows as instants, in order of time",
                        });
                    }
                    for &f in flow {
                        if !source.flows.contains(&f) {
                            return Err(SimError::Number {
                                place: format!("load.sources[{i}].trace.flow"),
                                got: f64::from(f),
                                allowed: "a flow of this source",
                            });
                        }
                    }
                }
                Process::Cbr { .. } | Process::Poisson => {}
            }
        }
        Ok(())
    }
}

const WITHIN: &str = "an instant within the trial";

const NO_DOOR: &str = "task units whose frames carry no units on: a copy goes nowhere";

fn index(place: String, got: usize, len: usize) -> Result<(), SimError> {
    if got < len { Ok(()) } else { Err(SimError::Index { place, got, len }) }
}

fn count(place: String, got: usize) -> Result<(), SimError> {
    if got > 0 { Ok(()) } else { Err(SimError::Number { place, got: 0.0, allowed: "at least 1" }) }
}

fn positive(place: String, got: f64) -> Result<(), SimError> {
    if got > 0.0 && got.is_finite() {
        Ok(())
    } else {
        Err(SimError::Number { place, got, allowed: "a finite number above 0" })
    }
}

fn not_negative(place: String, got: f64) -> Result<(), SimError> {
    if got >= 0.0 && got.is_finite() {
        Ok(())
    } else {
        Err(SimError::Number { place, got, allowed: "a finite number, 0 or more" })
    }
}
