//! The head of the details of a campaign, which campaigns lay out as text of their own.

pub(crate) mod header {
    use crate::paragraph;
    use crate::run_document::head;
    use brunt_stats::summary::Summary;

    /// The head of a campaign, from its first run: facts of the load without the option that it varies, and the lines below.
    pub(crate) fn of_campaign(summary: &Summary, varied: Option<&str>) -> (Vec<String>, String) {
        let mut lines = head::of_campaign(summary, varied);
        lines.push(("host".to_owned(), head::host(summary)));
        let (model, load) = lines.remove(0);
        let mut text = String::new();
        lines.iter().for_each(|(label, facts)| paragraph::facts(&mut text, label, facts));
        ([vec![model], load].concat(), text)
    }
}
